/* What the parts of the formatter share. */
#ifndef DDFUZZ_NROFF_H
#define DDFUZZ_NROFF_H

#include <stddef.h>
#include <stdint.h>

/* Basic units in a character's width and in a line's height. */
#define COLUMN 24
#define ROW 40
/* Columns that nothing goes beyond. */
#define WIDEST 200

/* A piece of text; not NUL-terminated. */
struct text {
	const uint8_t *at;
	size_t length;
};

/* Input from which characters are taken one after the other. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
};

/* input.c: lines of the file and of the macros called in it. */
#define MACRO_ARGUMENTS 9
void input_begin(const uint8_t *data, size_t size);
/* The next line, without its newline; 0 at the end of the input. */
int next_line(struct text *line);
/* Lines come from `body` next. 0 when macros are nested too deeply or called too often. */
int push_macro(struct text body, const struct text *arguments, size_t count);
/* Takes the lines up to `..`: what a macro is defined as. */
struct text take_definition(void);
/* Makes the tables of this file; 0 when there is no memory. */
int input_tables(void);
/* The argument of the macro at hand with this number, from 1. */
struct text macro_argument(size_t number);

/* names.c: macros, strings and number registers. */
enum name_kind { MACRO, STRING, REGISTER };
struct named {
	uint8_t name[2];
	enum name_kind kind;
	struct text text;
	int value;
};
void forget_names(void);
/* The first two characters of a name; a one-character name is filled up with a blank. */
struct named *find_named(enum name_kind kind, const uint8_t name[2]);
/* Finds or makes it; NULL when there are too many names. */
struct named *make_named(enum name_kind kind, const uint8_t name[2]);

/* expand.c: replaces \$1, \*x and \nx in a line. */
void expand_begin(void);
/* The line with its replacements, which stays where it is until the run ends. */
struct text expand(struct text line);
/* Takes the name behind an escape: one character, or two after `(`. */
void take_name(struct cursor *c, uint8_t name[2]);

/* number.c: numbers with scale indicators, in basic units. */
int read_number(struct cursor *c, int unit, int *relative);

/* text.c: characters and escapes of text lines. */
void text_begin(void);
void set_text(struct text line);
/* R, B, I, or P for the one before; anything else is ignored. */
void set_font(uint8_t letter);

/* fill.c: output lines. */
extern int filling, adjusting, centred, indent, line_length;
void fill_begin(void);
/* Adds a character to the word at hand. */
void add_to_word(uint8_t character, uint8_t font);
/* Ends the word at hand, if any. */
void end_word(void);
/* The input line ended: the word, too, and the line unless lines are filled. */
void end_input_line(int sentence);
/* Writes the line at hand, if any. */
void break_line(void);
void blank_lines(int count);
/* Indents the next line only. */
void indent_once(int columns);

/* request.c: lines that begin with a control character. */
void do_request(struct text line);

#endif
