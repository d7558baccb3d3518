/* Input lines.
 *
 * The bug (after the fuzz studies of Miller et al.; Hildebrandt and Zeller, ISSTA 2000, had 2121
 * characters left): a line is copied into a buffer that is taken to be
 * long enough. 2121 characters without a newline or NUL among them overrun it. */
#include "../complain.h"
#include "../guarded.h"
#include "flex.h"

#define LINE_SIZE 2120

static uint8_t *line_buffer;
static const uint8_t *input;
static size_t input_size, at;
static unsigned number;

int lines_begin(const uint8_t *data, size_t size)
{
	if (line_buffer == NULL)
		line_buffer = guarded_buffer(LINE_SIZE);
	input = data;
	input_size = size;
	at = 0;
	number = 0;
	return line_buffer != NULL;
}

/* Copies the rest of the line into the buffer; a newline or NUL ends it. */
static __attribute__((noinline)) size_t copy_line(void)
{
	size_t length = 0;

	while (at < input_size && input[at] != '\n' && input[at] != '\0') {
#ifdef DDFUZZ_FIXED
		/* The rest of a line that the buffer cannot hold is left out. */
		if (length == LINE_SIZE) {
			complain("line %u: too long", number);
			while (at < input_size && input[at] != '\n' && input[at] != '\0')
				at++;
			break;
		}
#endif
		line_buffer[length++] = input[at++];
	}
	return length;
}

int next_line(struct text *line)
{
	if (at >= input_size)
		return 0;
	number++;
	line->at = (const char *)line_buffer;
	line->length = copy_line();
	at++;
	if (line->length > 0 && line->at[line->length - 1] == '\r')
		line->length--;
	return 1;
}

unsigned line_number(void)
{
	return number;
}
