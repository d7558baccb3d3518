/* Memory between inaccessible pages. */
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "guarded.h"

/* Maps whole pages for `size` bytes with an inaccessible page on either side; `*room` gets the
 * bytes in between. */
static uint8_t *between_guards(size_t size, size_t *room)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *base;

	*room = (size + page - 1) / page * page;
	base = mmap(NULL, *room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	if (mprotect(base + page, *room, PROT_READ | PROT_WRITE) != 0) {
		munmap(base, *room + 2 * page);
		return NULL;
	}
	return base + page;
}

uint8_t *guarded_buffer(size_t size)
{
	size_t room;
	uint8_t *start = between_guards(size, &room);

	return start == NULL ? NULL : start + room - size;
}

uint8_t *guarded_table(size_t size)
{
	size_t room;

	return between_guards(size, &room);
}
