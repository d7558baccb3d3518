/* Complaints about the input, on stderr. */
#include <stdarg.h>
#include <stdio.h>

#include "complain.h"

#define SHOWN 10

static const char *tool = "";
static unsigned count;

void complain_as(const char *name)
{
	tool = name;
	count = 0;
}

void complain(const char *format, ...)
{
	char line[200];
	va_list arguments;

	if (count++ >= SHOWN)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s: %s%s\n", tool, line, count == SHOWN ? " (no more are shown)" : "");
}

unsigned complaints(void)
{
	return count;
}
