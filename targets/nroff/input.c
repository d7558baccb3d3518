/* Input lines: of the file, and of the macros called in it.
 *
 * Two bugs stand here. Lone 8-bit characters (after `\302\n`, on which the formatters of the
 * fuzz studies died): the character of a one-character line is
 * looked up in a table by its value as a signed number, before the table's start if the high bit
 * is set. And arguments outside of a macro: the innermost macro is asked for its argument even
 * when there is none. */
#include <string.h>

#include "../complain.h"
#include "../guarded.h"
#include "nroff.h"

/* Macros may be nested so deeply, and a run may read so many of them and so many bytes of them: a
 * few lines of definitions can ask for far more than any patience. */
#define DEEPEST 20
#define MOST_CALLS 5000
#define MOST_BYTES (1 << 20)

/* A macro being read, or the file. */
struct source {
	struct cursor rest;
	struct text arguments[MACRO_ARGUMENTS];
	size_t argument_count;
};

static struct source sources[DEEPEST];
static size_t depth;
static unsigned calls;
static size_t called_bytes;
/* The innermost macro; none is in force while lines of the file are read. */
static struct source *macro;
static uint8_t *controls;

int input_tables(void)
{
	if (controls == NULL && (controls = guarded_table(128)) != NULL) {
		controls['.'] = 1;
		controls['\''] = 1;
	}
	return controls != NULL;
}

void input_begin(const uint8_t *data, size_t size)
{
	sources[0].rest = (struct cursor){data, data + size};
	depth = 1;
	calls = 0;
	called_bytes = 0;
	macro = NULL;
}

int push_macro(struct text body, const struct text *arguments, size_t count)
{
	if (depth == DEEPEST || calls == MOST_CALLS || body.length > MOST_BYTES - called_bytes)
		return 0;
	calls++;
	called_bytes += body.length;
	macro = &sources[depth++];
	macro->rest = (struct cursor){body.at, body.at + body.length};
	memcpy(macro->arguments, arguments, count * sizeof *arguments);
	macro->argument_count = count;
	return 1;
}

static __attribute__((noinline)) int is_lone_control(uint8_t c)
{
#ifdef DDFUZZ_FIXED
	if (c >= 128)
		return 0;
#endif
	return controls[(signed char)c];
}

__attribute__((noinline)) struct text macro_argument(size_t number)
{
	static const struct text nothing = {(const uint8_t *)"", 0};

#ifdef DDFUZZ_FIXED
	if (macro == NULL)
		return nothing;
#endif
	return number <= macro->argument_count ? macro->arguments[number - 1] : nothing;
}

/* Takes the next line of this source, without its newline; 0 when it ended without one. */
static int take_line(struct cursor *rest, struct text *line)
{
	const uint8_t *newline = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));

	line->at = rest->at;
	line->length = (size_t)((newline == NULL ? rest->end : newline) - rest->at);
	rest->at = newline == NULL ? rest->end : newline + 1;
	return newline != NULL;
}

int next_line(struct text *line)
{
	for (;;) {
		struct cursor *rest = &sources[depth - 1].rest;

		if (rest->at == rest->end && depth == 1)
			return 0;
		if (rest->at == rest->end) {
			depth--;
			macro = depth > 1 ? &sources[depth - 1] : NULL;
			continue;
		}
		/* A control character alone on its line does nothing. */
		if (take_line(rest, line) && line->length == 1 && is_lone_control(*line->at))
			continue;
		return 1;
	}
}

struct text take_definition(void)
{
	struct cursor *rest = &sources[depth - 1].rest;
	struct text body = {rest->at, 0}, line;

	while (rest->at < rest->end) {
		take_line(rest, &line);
		if (line.length == 2 && line.at[0] == '.' && line.at[1] == '.')
			return body;
		body.length = (size_t)(rest->at - body.at);
	}
	return body;
}
