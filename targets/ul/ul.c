/* ul: turns overstruck text into the codes of a video terminal.
 *
 * A character struck over an underscore (in either order) becomes underlined, one struck twice
 * becomes bold. Backspace, tab and carriage return move the carriage; other control characters
 * and 8-bit characters are dropped.
 *
 * The bug (after the fuzz studies of Miller et al.; Hildebrandt and Zeller, ISSTA 2000, had 516
 * characters left): at each newline the line is packed into a
 * buffer that is taken to be long enough. 516 printable characters before a newline overrun it. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>

#include "../complain.h"
#include "../guarded.h"
#include "../target.h"

/* Characters that the packed line holds. */
#define LINE_SIZE 515

enum { PLAIN = 0, UNDERLINE = 1, BOLD = 2 };

/* One printable character as it was typed. */
struct strike {
	size_t column;
	size_t order;
	char character;
};

/* The line being read: room for as many strikes as the input has bytes. */
static struct strike *strikes;
static size_t strike_count;
static size_t column;
static int out_of_order;

/* The line packed by column, strike by strike. */
static uint8_t *line_buffer;
static uint8_t *packed;
static size_t packed_count;

static void begin_line(void)
{
	strike_count = 0;
	column = 0;
	out_of_order = 0;
}

static void strike(char character)
{
	struct strike *new = &strikes[strike_count];

	new->column = column++;
	new->order = strike_count;
	new->character = character;
	if (strike_count > 0 && new->column < new[-1].column)
		out_of_order = 1;
	strike_count++;
}

static int by_column(const void *left, const void *right)
{
	const struct strike *a = left, *b = right;

	if (a->column != b->column)
		return a->column < b->column ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* Appends to the packed line. */
static __attribute__((noinline)) void pack(char character)
{
	packed[packed_count++] = (uint8_t)character;
}

/* Packs the line into the buffer; 0 when there is no memory. */
static int pack_line(void)
{
	packed = line_buffer;
	packed_count = 0;
#ifdef DDFUZZ_FIXED
	/* A line that the buffer cannot hold gets one of its own. */
	if (strike_count > LINE_SIZE && (packed = malloc(strike_count)) == NULL)
		return 0;
#endif
	if (out_of_order)
		qsort(strikes, strike_count, sizeof *strikes, by_column);
	for (size_t i = 0; i < strike_count; i++)
		pack(strikes[i].character);
	return 1;
}

/* What the strikes [first, end) of one column show: the character, and how. */
static char show(size_t first, size_t end, int *mode)
{
	char character = ' ';
	int underscores = 0;

	*mode = PLAIN;
	for (size_t i = first; i < end; i++) {
		if (packed[i] == '_') {
			underscores++;
		} else if (packed[i] != ' ') {
			if ((char)packed[i] == character)
				*mode |= BOLD;
			character = (char)packed[i];
		}
	}
	if (underscores > 0 && character != ' ')
		*mode |= UNDERLINE;
	return underscores > 0 && character == ' ' ? '_' : character;
}

static void set_mode(int *now, int mode)
{
	int on = mode & ~*now, off = *now & ~mode;

	if (off & BOLD)
		fputs("\033[22m", stdout);
	if (off & UNDERLINE)
		fputs("\033[24m", stdout);
	if (on & UNDERLINE)
		fputs("\033[4m", stdout);
	if (on & BOLD)
		fputs("\033[1m", stdout);
	*now = mode;
}

/* Writes the packed line. */
static void show_line(void)
{
	size_t at = 0, next;
	int now = PLAIN, mode;

	for (size_t i = 0; i < packed_count; i = next) {
		char character;

		for (next = i + 1; next < packed_count; next++)
			if (strikes[next].column != strikes[i].column)
				break;
		character = show(i, next, &mode);
		if (at < strikes[i].column)
			set_mode(&now, PLAIN);
		for (; at < strikes[i].column; at++)
			putchar_unlocked(' ');
		set_mode(&now, mode);
		putchar_unlocked(character);
		at++;
	}
	set_mode(&now, PLAIN);
	putchar_unlocked('\n');
}

/* Ends a line at its newline; 0 when there is no memory. */
static int end_line(void)
{
	if (!pack_line())
		return 0;
	show_line();
	if (packed != line_buffer)
		free(packed);
	begin_line();
	return 1;
}

/* A last line without its newline may still be typed on: it is shown as it stands. */
static void show_unfinished_line(void)
{
	for (size_t i = 0; i < strike_count; i++)
		putchar_unlocked(strikes[i].character);
}

static int underline_all(const uint8_t *data, size_t size)
{
	begin_line();
	for (size_t i = 0; i < size; i++) {
		uint8_t c = data[i];

		if (c >= ' ' && c <= '~')
			strike((char)c);
		else if (c == '\n' && !end_line())
			return 0;
		else if (c == '\t')
			column = (column / 8 + 1) * 8;
		else if (c == '\b' && column > 0)
			column--;
		else if (c == '\r')
			column = 0;
	}
	show_unfinished_line();
	return 1;
}

int target_main(const uint8_t *data, size_t size)
{
	int done;

	complain_as("ul");
	if (line_buffer == NULL)
		line_buffer = guarded_buffer(LINE_SIZE);
	strikes = malloc((size + 1) * sizeof *strikes);
	done = line_buffer != NULL && strikes != NULL && underline_all(data, size);
	free(strikes);
	strikes = NULL;
	if (!done)
		complain("out of memory");
	return done ? 0 : 1;
}
