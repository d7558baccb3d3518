/* Characters and escapes of text lines. */
#include <stdlib.h>
#include <string.h>

#include "../complain.h"
#include "nroff.h"

static uint8_t font, font_before;

void text_begin(void)
{
	font = font_before = 'R';
}

void set_font(uint8_t letter)
{
	uint8_t before = font;

	if (letter == 'P')
		font = font_before;
	else if (letter == 'R' || letter == 'B' || letter == 'I')
		font = letter;
	else
		return;
	font_before = before;
}

static void add(uint8_t character)
{
	add_to_word(character, font);
}

static void add_times(uint8_t character, int count)
{
	for (; count > 0; count--)
		add(character);
}

/* Basic units as columns, none negative, none beyond the widest line. */
static int columns(int units)
{
	int count = units / COLUMN;

	return count < 0 ? 0 : count > WIDEST ? WIDEST : count;
}

/* Takes an argument such as 'text': any character may stand for the quote. A newline may, too,
 * and then the argument is the next line. */
static struct text take_argument(struct cursor *c)
{
	struct text argument = {c->at, 0};
	const uint8_t *close;

	if (c->at == c->end) {
		next_line(&argument);
		return argument;
	}
	argument.at++;
	close = memchr(argument.at, *c->at, (size_t)(c->end - argument.at));
	argument.length = (size_t)((close == NULL ? c->end : close) - argument.at);
	c->at = close == NULL ? c->end : close + 1;
	return argument;
}

static struct cursor in(struct text text)
{
	return (struct cursor){text.at, text.at + text.length};
}

/* \h'N': blanks that no line is broken at. */
static void move_horizontally(struct cursor *c)
{
	struct cursor argument = in(take_argument(c));
	int relative;

	add_times(' ', columns(read_number(&argument, COLUMN, &relative)));
}

/* \v'N': half lines up and down, which this paper does not do; the number must be right. */
static void move_vertically(struct cursor *c)
{
	struct cursor argument = in(take_argument(c));
	int relative;

	if (abs(read_number(&argument, ROW, &relative)) >= ROW)
		complain("vertical motion ignored");
}

/* \l'N C': a horizontal line of the character C, or of underscores. */
static void draw_rule(struct cursor *c)
{
	struct cursor argument = in(take_argument(c));
	int relative, count = columns(read_number(&argument, COLUMN, &relative));

	while (argument.at < argument.end && *argument.at == ' ')
		argument.at++;
	add_times(argument.at < argument.end && *argument.at > ' ' ? *argument.at : '_', count);
}

/* \D'l DX DY': a line of which this paper shows horizontal ones. Other shapes take numbers, too. */
static void draw(struct cursor *c)
{
	struct cursor argument = in(take_argument(c));
	int relative, across, down;
	uint8_t shape;

	if (argument.at == argument.end)
		return;
	shape = *argument.at++;
	across = read_number(&argument, COLUMN, &relative);
	down = read_number(&argument, ROW, &relative);
	if (shape == 'l' && down == 0)
		add_times('-', columns(across));
	else
		complain("this drawing is ignored");
}

/* \(xx: a character that has no key. */
static void special_character(struct cursor *c)
{
	static const struct {
		char name[3];
		const char *shown;
	} specials[] = {
		{"bu", "o"}, {"co", "(C)"}, {"em", "--"}, {"en", "-"}, {"hy", "-"}, {"mu", "x"},
		{"12", "1/2"}, {"14", "1/4"}, {"->", "->"}, {"<-", "<-"}, {"<=", "<="}, {">=", ">="},
		{"!=", "!="}, {"rq", "\""}, {"lq", "\""}, {"aq", "'"}, {"sq", "[]"}, {"ru", "_"},
	};

	if (c->end - c->at < 2)
		return;
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
		if (memcmp(specials[i].name, c->at, 2) == 0)
			for (const char *s = specials[i].shown; *s != '\0'; s++)
				add((uint8_t)*s);
	c->at += 2;
}

/* \sN: sizes, of which this paper has one. */
static void skip_size(struct cursor *c)
{
	if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
		c->at++;
	if (c->at < c->end && *c->at >= '0' && *c->at <= '9')
		c->at++;
	if (c->at < c->end && c->at[-1] >= '1' && c->at[-1] <= '3' && *c->at >= '0' && *c->at <= '9')
		c->at++;
}

/* Does the escape that the cursor stands at, behind the backslash. */
static void do_escape(struct cursor *c)
{
	uint8_t letter = *c->at++, name[2];

	switch (letter) {
	case 'h':
		move_horizontally(c);
		break;
	case 'v':
		move_vertically(c);
		break;
	case 'l':
		draw_rule(c);
		break;
	case 'D':
		draw(c);
		break;
	case 'f':
		take_name(c, name);
		set_font(name[0]);
		break;
	case 's':
		skip_size(c);
		break;
	case '(':
		special_character(c);
		break;
	case '"':
		c->at = c->end;
		break;
	case 'e':
		add('\\');
		break;
	case '&':
	case '|':
	case '^':
	case 'u':
	case 'd':
		break;
	default:
		if (letter >= ' ' && letter <= '~')
			add(letter);
	}
}

/* Whether the text ends a sentence: in . ? or !, behind which quotes and brackets may close. */
static int ends_sentence(struct text text)
{
	while (text.length > 0 && memchr("\"')]*", text.at[text.length - 1], 5) != NULL)
		text.length--;
	return text.length > 0 && memchr(".?!", text.at[text.length - 1], 3) != NULL;
}

void set_text(struct text line)
{
	struct cursor c = in(line);
	int joined = 0;

	if (line.length == 0 || *c.at == ' ')
		break_line();
	if (line.length == 0) {
		blank_lines(1);
		return;
	}
	for (int i = 0; c.at < c.end && *c.at == ' '; c.at++)
		if (i++ < WIDEST)
			add(' ');
	while (c.at < c.end) {
		uint8_t character = *c.at++;

		if (character == '\\' && c.at < c.end)
			do_escape(&c);
		else if (character == '\\')
			joined = 1;
		else if ((character == ' ' || character == '\t') && filling)
			end_word();
		else if (character == '\t')
			add(' ');
		else if ((character >= ' ' && character <= '~') || character >= 0xa0)
			add(character);
	}
	/* A backslash at the end of a line joins the next one to it. */
	if (!joined)
		end_input_line(ends_sentence(line));
}
