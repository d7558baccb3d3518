/* Characters and escapes of text lines.
 *
 * The bug (after `\302\n`, on which the formatters of the fuzz studies died): a word of one
 * character at the end of a line is looked up in a table by its value as a signed number, before
 * the table's start if the high bit is set. */
#include <stdio.h>
#include <string.h>

#include "../guarded.h"
#include "troff.h"

/* Words of one letter that should not be the last of an output line. */
static uint8_t *ties;

int text_tables(void)
{
	if (ties == NULL && (ties = guarded_table(128)) != NULL)
		ties['a'] = ties['A'] = ties['I'] = ties['O'] = 1;
	return ties != NULL;
}

static __attribute__((noinline)) int is_tied(uint8_t c)
{
#ifdef DDFUZZ_FIXED
	if (c >= 128)
		return 0;
#endif
	return ties[(signed char)c];
}

static struct cursor in(struct text text)
{
	return (struct cursor){text.at, text.at + text.length, text.at + text.length};
}

/* \h'N' and \v'N': motions. */
static void move_across(struct cursor *c)
{
	struct cursor argument = in(take_delimited(c));
	int units, relative;

	if (take_number(&argument, current_size() * POINT, &units, &relative))
		add_motion(units, 0);
}

static void move_down(struct cursor *c)
{
	struct cursor argument = in(take_delimited(c));
	int units, relative;

	if (take_number(&argument, spacing, &units, &relative))
		add_motion(0, units);
}

/* \l'N': a horizontal line. */
static void draw_rule(struct cursor *c)
{
	struct cursor argument = in(take_delimited(c));
	int relative, way[2] = {0, 0};

	if (take_number(&argument, current_size() * POINT, &way[0], &relative))
		add_drawing('l', way, 2);
}

/* \D'l X Y', \D'c D', \D'e X Y', \D'a X0 Y0 X1 Y1': drawings. */
static void draw(struct cursor *c)
{
	static const char shapes[] = "lcea";
	static const int takes[] = {2, 1, 2, 4};
	struct cursor argument = in(take_delimited(c));
	const char *shape;
	int relative, numbers[4] = {0, 0, 0, 0};

	if (argument.at == argument.end || *argument.at == '\0')
		return;
	shape = strchr(shapes, *argument.at++);
	if (shape == NULL)
		return;
	for (int i = 0; i < takes[shape - shapes]; i++)
		if (!take_number(&argument, current_size() * POINT, &numbers[i], &relative))
			return;
	add_drawing((uint8_t)*shape, numbers, takes[shape - shapes]);
}

static int width_of_text(struct text text)
{
	int width = 0;

	for (size_t i = 0; i < text.length && width < FARTHEST; i++)
		width += width_of(text.at[i]);
	return width;
}

/* \w'TEXT': the width of the text, in units. */
static void set_width(struct cursor *c)
{
	char digits[16];

	snprintf(digits, sizeof digits, "%d", width_of_text(take_delimited(c)));
	for (const char *d = digits; *d != '\0'; d++)
		add_character((uint8_t)*d);
}

/* \o'TEXT': its characters over each other, each moved back to the first one's place. */
static void overstrike(struct cursor *c)
{
	struct text text = take_delimited(c);

	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] < ' ' || text.at[i] > '~')
			continue;
		add_character(text.at[i]);
		if (i + 1 < text.length)
			add_motion(-width_of(text.at[i]), 0);
	}
}

/* \fF, \f(FF. */
static void change_font(struct cursor *c)
{
	struct text name = {c->at, 1};

	if (c->end - c->at > 2 && *c->at == '(') {
		name.at++;
		name.length = 2;
		c->at++;
	}
	if (c->at < c->end) {
		c->at += name.length;
		set_font(name);
	}
}

/* \sN, \s+N, \s-N, of one or two digits. */
static void change_size(struct cursor *c)
{
	int sign = 0, points = 0;

	if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
		sign = *c->at++ == '-' ? -1 : 1;
	if (c->at < c->end && *c->at >= '0' && *c->at <= '9')
		points = *c->at++ - '0';
	if (points >= 1 && points <= 3 && sign == 0 && c->at < c->end && *c->at >= '0' && *c->at <= '9')
		points = 10 * points + *c->at++ - '0';
	set_size(sign == 0 ? points : current_size() + sign * points);
}

static void special_character(struct cursor *c)
{
	if (c->end - c->at < 2)
		return;
	if (c->at[0] > ' ' && c->at[0] <= '~' && c->at[1] > ' ' && c->at[1] <= '~')
		add_special(c->at);
	c->at += 2;
}

/* Does the escape that the cursor stands at, behind the backslash. */
static void do_escape(struct cursor *c)
{
	uint8_t letter = *c->at++;

	switch (letter) {
	case 'h':
		move_across(c);
		break;
	case 'v':
		move_down(c);
		break;
	case 'l':
		draw_rule(c);
		break;
	case 'D':
		draw(c);
		break;
	case 'w':
		set_width(c);
		break;
	case 'o':
		overstrike(c);
		break;
	case 'f':
		change_font(c);
		break;
	case 's':
		change_size(c);
		break;
	case '(':
		special_character(c);
		break;
	case 'u':
		add_motion(0, -current_size() * POINT / 2);
		break;
	case 'd':
		add_motion(0, current_size() * POINT / 2);
		break;
	case ' ':
		add_motion(width_of(' '), 0);
		break;
	case '"':
		c->at = c->end;
		break;
	case 'e':
		add_character('\\');
		break;
	case '&':
		break;
	default:
		if (letter > ' ' && letter <= '~')
			add_character(letter);
	}
}

/* Whether the line's last word is one letter that is tied to the next line's first word. */
static int ends_tied(struct text line)
{
	if (line.length == 0 || (line.length > 1 && line.at[line.length - 2] != ' '))
		return 0;
	return is_tied(line.at[line.length - 1]);
}

void set_text(struct text line, int ended)
{
	struct cursor c = in(line);

	c.last += ended;
	if (line.length == 0) {
		break_line();
		space_down(spacing);
		return;
	}
	while (c.at < c.end) {
		uint8_t character = *c.at++;

		if (character == '\\') {
			if (c.at < c.end)
				do_escape(&c);
		} else if ((character == ' ' || character == '\t') && filling) {
			end_word();
		} else if (character == ' ' || character == '\t') {
			add_motion(width_of(' '), 0);
		} else if ((character > ' ' && character <= '~') || character >= 0xa0) {
			add_character(character);
		}
	}
	if (filling && centred == 0 && ended && ends_tied(line))
		add_motion(width_of(' '), 0);
	else
		end_input_line();
}
