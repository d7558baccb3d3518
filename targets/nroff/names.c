/* Macros, strings and number registers, by their names of up to two characters. */
#include <string.h>

#include "nroff.h"

#define MOST_NAMES 200

static struct named names[MOST_NAMES];
static size_t count;

void forget_names(void)
{
	count = 0;
}

struct named *find_named(enum name_kind kind, const uint8_t name[2])
{
	for (size_t i = 0; i < count; i++)
		if (names[i].kind == kind && memcmp(names[i].name, name, 2) == 0)
			return &names[i];
	return NULL;
}

struct named *make_named(enum name_kind kind, const uint8_t name[2])
{
	struct named *found = find_named(kind, name);

	if (found != NULL || count == MOST_NAMES)
		return found;
	found = &names[count++];
	memset(found, 0, sizeof *found);
	memcpy(found->name, name, 2);
	found->kind = kind;
	return found;
}
