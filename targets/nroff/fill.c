/* Output lines: filled with words, adjusted, indented, centred. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "nroff.h"

/* Characters of the longest word; longer ones are cut in pieces. */
#define WORD_SIZE 1000
#define LINE_SIZE (WORD_SIZE + WIDEST + 2)

/* A character on the paper, and its font. */
struct cell {
	uint8_t character;
	uint8_t font;
};

int filling, adjusting, centred, indent, line_length;

static struct cell word[WORD_SIZE], line[LINE_SIZE];
static int word_used, line_used;
/* Where the gaps between the line's words begin. */
static int gaps[LINE_SIZE], gap_count;
/* Blanks due before the next word. */
static int spaces;
/* The next line's indentation. */
static int next_indent;

void fill_begin(void)
{
	filling = adjusting = 1;
	centred = indent = next_indent = 0;
	line_length = 65;
	word_used = line_used = gap_count = 0;
	spaces = 1;
}

void indent_once(int columns)
{
	next_indent = columns;
}

static void put_blanks(int count)
{
	while (count-- > 0)
		putchar_unlocked(' ');
}

/* Shows bold by striking twice, italic by an underscore below. */
static void put_cell(struct cell cell)
{
	if (cell.font != 'R' && cell.character != ' ') {
		putchar_unlocked(cell.font == 'B' ? cell.character : '_');
		putchar_unlocked('\b');
	}
	putchar_unlocked(cell.character);
}

/* Writes the line at hand; `missing` blanks are shared out over its gaps. */
static void put_line(int missing)
{
	int gap = 0;
	int left = centred > 0 ? (line_length - next_indent - line_used) / 2 : 0;

	if (gap_count == 0 || missing < 0)
		missing = 0;
	put_blanks(next_indent + left);
	for (int i = 0; i < line_used; i++) {
		if (gap < gap_count && gaps[gap] == i) {
			put_blanks((gap + 1) * missing / gap_count - gap * missing / gap_count);
			gap++;
		}
		put_cell(line[i]);
	}
	putchar_unlocked('\n');
	line_used = gap_count = 0;
	spaces = 1;
	next_indent = indent;
}

void add_to_word(uint8_t character, uint8_t font)
{
	if (word_used == WORD_SIZE)
		end_word();
	word[word_used++] = (struct cell){character, font};
}

void end_word(void)
{
	int room = line_length - next_indent;

	if (word_used == 0)
		return;
	if (line_used > 0 && (filling ? line_used + spaces + word_used > room
				      : line_used + spaces + word_used > LINE_SIZE))
		put_line(adjusting && filling ? room - line_used : 0);
	if (line_used > 0) {
		gaps[gap_count++] = line_used;
		while (spaces-- > 0)
			line[line_used++] = (struct cell){' ', 'R'};
	}
	spaces = 1;
	memcpy(line + line_used, word, (size_t)word_used * sizeof *word);
	line_used += word_used;
	word_used = 0;
}

void end_input_line(int sentence)
{
	end_word();
	if (!filling || centred > 0)
		break_line();
	else if (sentence)
		spaces = 2;
	if (centred > 0)
		centred--;
}

void break_line(void)
{
	end_word();
	if (line_used > 0)
		put_line(0);
	next_indent = indent;
	spaces = 1;
}

void blank_lines(int count)
{
	while (count-- > 0)
		putchar_unlocked('\n');
}
