/* Replaces macro arguments, strings and number registers before a line is looked at. */
#include <stdio.h>
#include <string.h>

#include "../complain.h"
#include "nroff.h"

#define DEEPEST 8
/* Bytes that a run may expand to, and replacements it may make: a few lines of definitions can
 * ask for far more than any memory or patience. */
#define ROOM (1 << 20)
#define MOST_REPLACEMENTS 50000

static uint8_t room[ROOM];
static size_t used;
static unsigned replacements;

static void append(const uint8_t *at, size_t length);
static void append_expanded(struct text text, int depth);

void expand_begin(void)
{
	used = 0;
	replacements = 0;
}

static void append(const uint8_t *at, size_t length)
{
	if (length > ROOM - used) {
		complain("expansion too large");
		length = ROOM - used;
	}
	memcpy(room + used, at, length);
	used += length;
}

void take_name(struct cursor *c, uint8_t name[2])
{
	int two = c->end - c->at > 2 && *c->at == '(';

	name[0] = name[1] = ' ';
	c->at += two;
	if (c->at < c->end)
		name[0] = *c->at++;
	if (two)
		name[1] = *c->at++;
}

static void append_register(const uint8_t name[2])
{
	const struct named *found = find_named(REGISTER, name);
	char digits[16];

	snprintf(digits, sizeof digits, "%d", found == NULL ? 0 : found->value);
	append((const uint8_t *)digits, strlen(digits));
}

/* Makes the replacement that the cursor stands at, behind the backslash; 0 when there is none. */
static int replace(struct cursor *c, int depth)
{
	const struct named *string;
	uint8_t name[2];
	struct text argument;

	if (c->end - c->at < 2)
		return 0;
	if (c->at[0] == '$' && c->at[1] >= '1' && c->at[1] <= '9') {
		argument = macro_argument((size_t)(c->at[1] - '0'));
		append(argument.at, argument.length);
		c->at += 2;
	} else if (c->at[0] == '*') {
		c->at++;
		take_name(c, name);
		string = find_named(STRING, name);
		if (string != NULL)
			append_expanded(string->text, depth + 1);
	} else if (c->at[0] == 'n') {
		c->at++;
		take_name(c, name);
		append_register(name);
	} else {
		return 0;
	}
	return 1;
}

static int is_replaced(const struct cursor *c)
{
	return c->at < c->end && (*c->at == '$' || *c->at == '*' || *c->at == 'n');
}

static void append_expanded(struct text text, int depth)
{
	struct cursor c = {text.at, text.at + text.length};

	while (c.at < c.end) {
		const uint8_t *backslash = memchr(c.at, '\\', (size_t)(c.end - c.at));

		append(c.at, (size_t)((backslash == NULL ? c.end : backslash) - c.at));
		if (backslash == NULL)
			return;
		c.at = backslash + 1;
		/* `\\$1` is how a definition puts off a replacement until its call: here it is due. */
		if (c.end - c.at > 1 && *c.at == '\\' && is_replaced(&(struct cursor){c.at + 1, c.end}))
			c.at++;
		if (depth < DEEPEST && replacements++ < MOST_REPLACEMENTS && replace(&c, depth))
			continue;
		append(backslash, 1);
		if (c.at < c.end && *c.at != '\n')
			append(c.at++, 1);
	}
}

struct text expand(struct text line)
{
	struct text expanded = {room + used, 0};
	struct cursor c = {line.at, line.at + line.length};

	while (c.at < c.end) {
		c.at = memchr(c.at, '\\', (size_t)(c.end - c.at));
		if (c.at == NULL)
			return line;
		while (c.at < c.end && *c.at == '\\')
			c.at++;
		if (is_replaced(&c))
			break;
	}
	if (c.at == c.end)
		return line;
	append_expanded(line, 0);
	expanded.length = (size_t)(room + used - expanded.at);
	return expanded;
}
