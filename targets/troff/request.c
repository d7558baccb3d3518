/* Requests: lines that begin with a control character. */
#include <string.h>

#include "../complain.h"
#include "troff.h"

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

static int within(int value, int least, int most)
{
	return value < least ? least : value > most ? most : value;
}

/* The number behind a request, or `otherwise` without one; a signed one is added to `now`. */
static int argument_number(struct cursor *c, int unit, int now, int otherwise)
{
	int number, relative;

	if (!take_number(c, unit, &number, &relative))
		return otherwise;
	return relative ? now + number : number;
}

static void request_br(struct cursor *c)
{
	(void)c;
	break_line();
}

static void request_sp(struct cursor *c)
{
	break_line();
	space_down(argument_number(c, spacing, 0, spacing));
}

static void request_bp(struct cursor *c)
{
	(void)c;
	break_line();
	space_down(FARTHEST + 1);
}

static void request_ce(struct cursor *c)
{
	break_line();
	centred = within(argument_number(c, 1, 0, 1), 0, 10000);
}

static void request_fi(struct cursor *c)
{
	(void)c;
	break_line();
	filling = 1;
}

static void request_nf(struct cursor *c)
{
	(void)c;
	break_line();
	filling = 0;
}

static void request_in(struct cursor *c)
{
	break_line();
	indent = within(argument_number(c, current_size() * POINT, indent, 0), 0, FARTHEST);
	indent_once(indent);
}

static void request_ti(struct cursor *c)
{
	break_line();
	indent_once(within(argument_number(c, current_size() * POINT, indent, 0), 0, FARTHEST));
}

static void request_ll(struct cursor *c)
{
	line_length = within(argument_number(c, current_size() * POINT, line_length, 13 * INCH / 2),
			     1, FARTHEST);
}

static void request_po(struct cursor *c)
{
	offset = within(argument_number(c, current_size() * POINT, offset, INCH), 0, FARTHEST);
}

static void request_vs(struct cursor *c)
{
	spacing = within(argument_number(c, POINT, spacing, 12 * POINT), 1, INCH);
}

static void request_ps(struct cursor *c)
{
	set_size(argument_number(c, 1, current_size(), 0));
}

static void request_ft(struct cursor *c)
{
	struct text name;

	skip_blanks(c);
	name.at = c->at;
	while (c->at < c->end && *c->at != ' ' && *c->at != '\t')
		c->at++;
	name.length = (size_t)(c->at - name.at);
	if (name.length == 0) {
		name.at = (const uint8_t *)"P";
		name.length = 1;
	}
	set_font(name);
}

void do_request(struct text line)
{
	static const struct {
		char name[3];
		void (*act)(struct cursor *c);
	} requests[] = {
		{"br", request_br}, {"sp", request_sp}, {"bp", request_bp}, {"ce", request_ce},
		{"fi", request_fi}, {"nf", request_nf}, {"in", request_in}, {"ti", request_ti},
		{"ll", request_ll}, {"po", request_po}, {"vs", request_vs}, {"ps", request_ps},
		{"ft", request_ft},
	};
	const uint8_t *end = line.at + line.length;
	struct cursor c = {line.at + 1, end, end};

	skip_blanks(&c);
	/* A control character alone does nothing, and so does a comment. */
	if (c.at == c.end || (end - c.at > 1 && c.at[0] == '\\' && c.at[1] == '"'))
		return;
	for (size_t i = 0; end - c.at >= 2 && i < sizeof requests / sizeof *requests; i++) {
		if (memcmp(requests[i].name, c.at, 2) == 0) {
			c.at += 2;
			requests[i].act(&c);
			return;
		}
	}
	complain("unknown request");
}
