/* Arguments of requests and escapes.
 *
 * The bug (after `\D^J%0F`, on which the formatters of the fuzz studies died): an argument's closing
 * delimiter is looked for and used, whether or not there is one. Motions, drawings, rules, widths
 * and overstrikes all take their arguments here. */
#include <string.h>

#include "../complain.h"
#include "troff.h"

#define LARGEST 100000

__attribute__((noinline)) struct text take_delimited(struct cursor *c)
{
	struct text argument = {c->at, 0};
	const uint8_t *close;
	uint8_t delimiter;

	if (c->at == c->last)
		return argument;
	/* A newline that is to delimit stands at the end of the line, and no other comes after it. */
	delimiter = *c->at;
	argument.at += c->at < c->end;
	close = memchr(argument.at, delimiter, (size_t)(c->end - argument.at));
#ifdef DDFUZZ_FIXED
	if (close == NULL) {
		complain("an argument has no end");
		argument.length = (size_t)(c->end - argument.at);
		c->at = c->end;
		return argument;
	}
#endif
	/* A delimiter next to the closing one belongs to the argument. */
	while (close + 1 < c->end && close[1] == delimiter)
		close++;
	argument.length = (size_t)(close - argument.at);
	c->at = close + 1;
	return argument;
}

static int scale_units(uint8_t letter)
{
	switch (letter) {
	case 'i':
		return INCH;
	case 'c':
		return INCH * 50 / 127;
	case 'P':
		return INCH / 6;
	case 'm':
		return current_size() * POINT;
	case 'n':
		return current_size() * POINT / 2;
	case 'p':
		return POINT;
	case 'u':
		return 1;
	default:
		return 0;
	}
}

static int is_digit(const struct cursor *c)
{
	return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

int take_number(struct cursor *c, int unit, int *number, int *relative)
{
	long hundredths = 0;
	int digits = 0, sign = 1;

	while (c->at < c->end && *c->at == ' ')
		c->at++;
	*relative = 0;
	if (c->at < c->end && (*c->at == '+' || *c->at == '-')) {
		*relative = 1;
		sign = *c->at++ == '-' ? -1 : 1;
	}
	for (; is_digit(c); c->at++, digits++)
		if (hundredths < 100 * LARGEST)
			hundredths = 10 * hundredths + 100 * (*c->at - '0');
	if (c->at < c->end && *c->at == '.') {
		c->at++;
		for (int worth = 10; is_digit(c); c->at++, digits++, worth /= 10)
			hundredths += worth * (*c->at - '0');
	}
	if (digits > 0 && c->at < c->end && scale_units(*c->at) > 0)
		unit = scale_units(*c->at++);
	if (hundredths > 100 * LARGEST)
		hundredths = 100 * LARGEST;
	hundredths = hundredths * unit / 100;
	*number = sign * (int)(hundredths > FARTHEST ? FARTHEST : hundredths);
	return digits > 0;
}
