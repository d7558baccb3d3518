/* What the parts of the typesetter share. */
#ifndef DDFUZZ_TROFF_H
#define DDFUZZ_TROFF_H

#include <stddef.h>
#include <stdint.h>

/* The device's units in an inch and in a point. */
#define INCH 720
#define POINT 10
/* The longest way, in units, that anything goes: a page is 11 inches high. */
#define FARTHEST (11 * INCH)

/* A piece of text; not NUL-terminated. */
struct text {
	const uint8_t *at;
	size_t length;
};

/* Input from which characters are taken one after the other. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	/* Where nothing is left to read: beyond `end` if a newline or delimiter stands there. */
	const uint8_t *last;
};

/* font.c: the fonts that are mounted, and how wide their characters are. */
struct font {
	char name[3];
	int position;
	int widening;
};
void font_begin(void);
/* Changes to the font with this name, position, or `P` for the one before. */
void set_font(struct text name);
const struct font *current_font(void);
/* Changes the size, in points; 0 is the one before. */
void set_size(int points);
int current_size(void);
/* The width of a character in the current font and size, in units. */
int width_of(uint8_t character);

/* argument.c: arguments of requests and escapes. */
/* Takes what stands between two equal characters, the first of which comes next. */
struct text take_delimited(struct cursor *c);
/* Takes a number in units; `unit` units are its scale without a letter. `*relative` is 1
 * when it has a sign, else 0. Returns 0 when there is no number. */
int take_number(struct cursor *c, int unit, int *number, int *relative);

/* text.c: characters and escapes of text lines. */
/* Sets a line; `ended` if a newline stands behind it. */
void set_text(struct text line, int ended);
/* Makes the tables of this file; 0 when there is no memory. */
int text_tables(void);

/* page.c: output lines, as commands of the device. */
extern int filling, centred, indent, line_length, offset, spacing;
void page_begin(void);
void page_end(void);
/* Adds to the word at hand. */
void add_character(uint8_t character);
void add_special(const uint8_t name[2]);
void add_motion(int across, int down);
/* A line, circle, ellipse or arc: `shape` is the device's letter for it. */
void add_drawing(uint8_t shape, const int *numbers, int count);
void end_word(void);
/* The input line ended: the word, too, and the line unless lines are filled. */
void end_input_line(void);
/* Writes the line at hand, if any. */
void break_line(void);
void space_down(int units);
void indent_once(int units);

/* request.c: lines that begin with a control character. */
void do_request(struct text line);

#endif
