/* Requests and macro calls: lines that begin with a control character. */
#include <string.h>

#include "../complain.h"
#include "nroff.h"

#define MOST_BLANK_LINES 66

/* Whether the request at hand may break the line: not if it began with an apostrophe. */
static int breaks;

static int is_end(const struct cursor *c)
{
	return c->at == c->end;
}

static void skip_blanks(struct cursor *c)
{
	while (!is_end(c) && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

static void break_unless_held(void)
{
	if (breaks)
		break_line();
}

/* The number behind a request, or `otherwise` without one; a signed one is added to `now`. */
static int argument_number(struct cursor *c, int unit, int now, int otherwise)
{
	int relative, value;

	skip_blanks(c);
	if (is_end(c))
		return otherwise;
	value = read_number(c, unit, &relative) / unit;
	return relative != 0 ? now + value : value;
}

static int within(int value, int least, int most)
{
	return value < least ? least : value > most ? most : value;
}

static void request_br(struct cursor *c)
{
	(void)c;
	break_unless_held();
}

static void request_sp(struct cursor *c)
{
	int count = argument_number(c, ROW, 0, 1);

	break_unless_held();
	blank_lines(within(count, 0, MOST_BLANK_LINES));
}

static void request_ce(struct cursor *c)
{
	int count = argument_number(c, 1, 0, 1);

	break_unless_held();
	centred = within(count, 0, 10000);
}

static void request_in(struct cursor *c)
{
	int columns = argument_number(c, COLUMN, indent, 0);

	break_unless_held();
	indent = within(columns, 0, WIDEST - 1);
	/* A line that goes on keeps the indentation it began with. */
	if (breaks)
		indent_once(indent);
}

static void request_ti(struct cursor *c)
{
	int columns = argument_number(c, COLUMN, indent, 0);

	break_unless_held();
	indent_once(within(columns, 0, WIDEST - 1));
}

static void request_ll(struct cursor *c)
{
	line_length = within(argument_number(c, COLUMN, line_length, 65), 1, WIDEST);
}

static void request_fi(struct cursor *c)
{
	(void)c;
	break_unless_held();
	filling = 1;
}

static void request_nf(struct cursor *c)
{
	(void)c;
	break_unless_held();
	filling = 0;
}

static void request_ad(struct cursor *c)
{
	(void)c;
	adjusting = 1;
}

static void request_na(struct cursor *c)
{
	(void)c;
	adjusting = 0;
}

static void request_ft(struct cursor *c)
{
	skip_blanks(c);
	set_font(is_end(c) ? 'P' : *c->at);
}

/* Takes the name of a macro, string or register; 0 when there is none. */
static int take_request_name(struct cursor *c, uint8_t name[2])
{
	name[0] = name[1] = ' ';
	for (int i = 0; i < 2 && !is_end(c) && *c->at != ' ' && *c->at != '\t'; i++)
		name[i] = *c->at++;
	return name[0] != ' ';
}

/* Makes what the request defines; NULL, after a complaint, when that cannot be. */
static struct named *take_defined(struct cursor *c, enum name_kind kind)
{
	uint8_t name[2];
	struct named *named = NULL;

	skip_blanks(c);
	if (take_request_name(c, name))
		named = make_named(kind, name);
	if (named == NULL)
		complain("a name is missing, or there are too many");
	skip_blanks(c);
	return named;
}

static void request_de(struct cursor *c)
{
	struct named *macro = take_defined(c, MACRO);
	struct text body = take_definition();

	if (macro != NULL)
		macro->text = body;
}

static void request_ds(struct cursor *c)
{
	struct named *string = take_defined(c, STRING);

	if (string == NULL)
		return;
	/* A quote keeps the blanks behind it. */
	if (!is_end(c) && *c->at == '"')
		c->at++;
	string->text = (struct text){c->at, (size_t)(c->end - c->at)};
}

static void request_nr(struct cursor *c)
{
	struct named *number = take_defined(c, REGISTER);

	if (number != NULL)
		number->value = within(argument_number(c, 1, number->value, 0), -99999, 99999);
}

/* Takes one argument of a macro: a word, or what stands between quotes. */
static struct text take_macro_argument(struct cursor *c)
{
	int quoted = *c->at == '"';
	struct text argument = {c->at + quoted, 0};

	for (c->at += quoted; !is_end(c); c->at++)
		if (quoted ? *c->at == '"' : *c->at == ' ' || *c->at == '\t')
			break;
	argument.length = (size_t)(c->at - argument.at);
	if (quoted && !is_end(c))
		c->at++;
	return argument;
}

static void call_macro(const struct named *macro, struct cursor *c)
{
	struct text arguments[MACRO_ARGUMENTS];
	size_t count = 0;

	skip_blanks(c);
	while (!is_end(c) && count < MACRO_ARGUMENTS) {
		arguments[count++] = take_macro_argument(c);
		skip_blanks(c);
	}
	if (!push_macro(macro->text, arguments, count))
		complain("macros are nested too deeply, or called too often");
}

void do_request(struct text line)
{
	static const struct {
		char name[3];
		void (*act)(struct cursor *c);
	} requests[] = {
		{"br", request_br}, {"sp", request_sp}, {"ce", request_ce}, {"in", request_in},
		{"ti", request_ti}, {"ll", request_ll}, {"fi", request_fi}, {"nf", request_nf},
		{"ad", request_ad}, {"na", request_na}, {"ft", request_ft}, {"de", request_de},
		{"ds", request_ds}, {"nr", request_nr},
	};
	struct cursor c = {line.at + 1, line.at + line.length};
	const struct named *macro;
	uint8_t name[2];

	breaks = *line.at == '.';
	skip_blanks(&c);
	if (!take_request_name(&c, name) || (name[0] == '\\' && name[1] == '"'))
		return;
	macro = find_named(MACRO, name);
	if (macro != NULL) {
		call_macro(macro, &c);
		return;
	}
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		if (memcmp(requests[i].name, name, 2) == 0) {
			requests[i].act(&c);
			return;
		}
	}
	complain("unknown request");
}
