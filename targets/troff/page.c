/* Output lines, as commands of a device: p page, H and V absolute position, f font, s size,
 * t text, C special character, h and v relative motion, w between words, D drawing, n line end. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "troff.h"

/* Elements of the longest word and of the longest line; longer ones are cut in pieces. */
#define WORD_SIZE 400
#define LINE_SIZE 2000

enum kind { CHARACTER, SPECIAL, MOTION, DRAWING, GAP };

/* What a word is made of. */
struct element {
	uint8_t kind;
	uint8_t font;
	uint8_t size;
	/* The character, the special character's name, or the drawing's shape. */
	uint8_t name[2];
	uint8_t count;
	int width;
	int numbers[4];
};

int filling, centred, indent, line_length, offset, spacing;

static struct element word[WORD_SIZE], line[LINE_SIZE];
static int word_used, word_width, line_used, line_width, gaps;
static int next_indent, down, page;
/* The device's font and size. */
static int font_now, size_now;

static void put_number(long number)
{
	char digits[24];
	int used = 0;

	if (number < 0) {
		putchar_unlocked('-');
		number = -number;
	}
	do
		digits[used++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (used > 0)
		putchar_unlocked(digits[--used]);
}

static void put_command(char letter, long number)
{
	putchar_unlocked(letter);
	put_number(number);
	putchar_unlocked('\n');
}

static void new_page(void)
{
	put_command('p', ++page);
	down = 0;
}

void page_begin(void)
{
	filling = 1;
	centred = indent = next_indent = 0;
	line_length = 13 * INCH / 2;
	offset = INCH;
	spacing = 12 * POINT;
	word_used = word_width = line_used = line_width = gaps = 0;
	font_now = size_now = page = 0;
	printf("x T crt\nx res %d 1 1\nx init\n", INCH);
	new_page();
}

void page_end(void)
{
	break_line();
	printf("x trailer\nV%d\nx stop\n", FARTHEST);
}

void indent_once(int units)
{
	next_indent = units;
}

/* A new element of the word at hand. */
static struct element *add(enum kind kind, int width)
{
	struct element *element;

	if (word_used == WORD_SIZE)
		end_word();
	element = &word[word_used++];
	memset(element, 0, sizeof *element);
	element->kind = (uint8_t)kind;
	element->font = (uint8_t)current_font()->position;
	element->size = (uint8_t)current_size();
	element->width = width;
	word_width += width;
	return element;
}

void add_character(uint8_t character)
{
	add(CHARACTER, width_of(character))->name[0] = character;
}

void add_special(const uint8_t name[2])
{
	memcpy(add(SPECIAL, width_of(0))->name, name, 2);
}

void add_motion(int across, int below)
{
	add(MOTION, across)->numbers[1] = below;
}

void add_drawing(uint8_t shape, const int *numbers, int count)
{
	/* An arc ends where both of its ways lead to; the others end to the right. */
	struct element *element = add(DRAWING, numbers[0] + (shape == 'a' ? numbers[2] : 0));

	element->name[0] = shape;
	element->count = (uint8_t)count;
	memcpy(element->numbers, numbers, (size_t)count * sizeof *numbers);
}

static void put_drawing(const struct element *element)
{
	putchar_unlocked('D');
	putchar_unlocked(element->name[0]);
	for (int i = 0; i < element->count; i++) {
		putchar_unlocked(' ');
		put_number(element->numbers[i]);
	}
	putchar_unlocked('\n');
}

static void put_font(const struct element *element)
{
	if (element->font != font_now)
		put_command('f', font_now = element->font);
	if (element->size != size_now)
		put_command('s', size_now = element->size);
}

/* Writes the characters from `first` on that the device can take at once; returns their end. */
static int put_characters(int first)
{
	int i = first;

	put_font(&line[first]);
	putchar_unlocked('t');
	for (; i < line_used && line[i].kind == CHARACTER && line[i].font == font_now &&
	       line[i].size == size_now; i++)
		putchar_unlocked(line[i].name[0]);
	putchar_unlocked('\n');
	return i;
}

static void put_element(const struct element *element, int more)
{
	switch (element->kind) {
	case SPECIAL:
		put_font(element);
		printf("C%c%c\n", element->name[0], element->name[1]);
		put_command('h', element->width);
		break;
	case MOTION:
		if (element->width != 0)
			put_command('h', element->width);
		if (element->numbers[1] != 0)
			put_command('v', element->numbers[1]);
		break;
	case DRAWING:
		put_font(element);
		put_drawing(element);
		break;
	default:
		putchar_unlocked('w');
		put_command('h', element->width + more);
	}
}

/* Writes the line at hand; `missing` units are shared out over its gaps. */
static void put_line(int missing)
{
	int gap = 0, left = offset + next_indent;

	if (centred > 0 && line_width < line_length - next_indent)
		left += (line_length - next_indent - line_width) / 2;
	if (gaps == 0 || missing < 0)
		missing = 0;
	down += spacing;
	if (down > FARTHEST) {
		new_page();
		down = spacing;
	}
	put_command('H', left);
	put_command('V', down);
	for (int i = 0; i < line_used;) {
		int more = 0;

		if (line[i].kind == CHARACTER) {
			i = put_characters(i);
			continue;
		}
		if (line[i].kind == GAP) {
			more = (gap + 1) * missing / gaps - gap * missing / gaps;
			gap++;
		}
		put_element(&line[i++], more);
	}
	printf("n%d 0\n", spacing);
	line_used = line_width = gaps = 0;
	next_indent = indent;
}

/* The gap between two words, as wide as a blank now. */
static void add_gap(int width)
{
	struct element *element = &line[line_used++];

	memset(element, 0, sizeof *element);
	element->kind = GAP;
	element->width = width;
	line_width += width;
	gaps++;
}

void end_word(void)
{
	int room = line_length - next_indent, blank = width_of(' ');

	if (word_used == 0)
		return;
	if (line_used > 0 && (line_used + word_used + 1 > LINE_SIZE ||
			      (filling && line_width + blank + word_width > room)))
		put_line(filling ? room - line_width : 0);
	if (line_used > 0)
		add_gap(blank);
	memcpy(line + line_used, word, (size_t)word_used * sizeof *word);
	line_used += word_used;
	line_width += word_width;
	word_used = word_width = 0;
}

void end_input_line(void)
{
	end_word();
	if (!filling || centred > 0)
		break_line();
	if (centred > 0)
		centred--;
}

void break_line(void)
{
	end_word();
	if (line_used > 0)
		put_line(0);
	next_indent = indent;
}

void space_down(int units)
{
	down += units;
	if (down < 0)
		down = 0;
	if (down > FARTHEST)
		new_page();
}
