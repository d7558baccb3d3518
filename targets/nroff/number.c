/* Numbers with scale indicators, such as `2i` or `-1.5v`.
 *
 * The bug (after `\D^J%0F`, on which the formatters of the fuzz studies of Miller et al. and of
 * Hildebrandt and Zeller, ISSTA 2000, died): whatever letter stands behind a number is taken for
 * a scale indicator and looked up, and what the look-up found is used unseen. Motions, lines,
 * drawings and requests all read their numbers here. */
#include "../complain.h"
#include "nroff.h"

#define LARGEST 100000

/* A scale indicator, and the basic units it stands for. */
struct scale {
	uint8_t letter;
	int units;
};

static const struct scale *find_scale(uint8_t letter)
{
	static const struct scale scales[] = {
		{'i', 240}, {'c', 94}, {'P', 40}, {'m', COLUMN}, {'n', COLUMN},
		{'p', 3}, {'u', 1}, {'v', ROW},
	};

	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
		if (scales[i].letter == letter)
			return &scales[i];
	return NULL;
}

/* The size of the unit named by the letter behind a number. */
static __attribute__((noinline)) int scale_units(uint8_t letter, int unit)
{
	const struct scale *scale = find_scale(letter);

#ifdef DDFUZZ_FIXED
	if (scale == NULL) {
		complain("bad scale indicator");
		return unit;
	}
#else
	(void)unit;
#endif
	return scale->units;
}

static int is_digit(const struct cursor *c)
{
	return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* Takes a number; without a scale indicator it is in units of `unit` basic units. A
 * blank or the end of the text ends it. `*relative` is its sign, 0 for none. */
int read_number(struct cursor *c, int unit, int *relative)
{
	long hundredths = 0;
	int digits = 0, sign;

	while (c->at < c->end && *c->at == ' ')
		c->at++;
	*relative = 0;
	if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
		*relative = *c->at++ == '-' ? -1 : 1;
	for (; is_digit(c); c->at++, digits++)
		if (hundredths < 100 * LARGEST)
			hundredths = 10 * hundredths + 100 * (*c->at - '0');
	if (c->at < c->end && *c->at == '.') {
		c->at++;
		for (int worth = 10; is_digit(c); c->at++, digits++, worth /= 10)
			hundredths += worth * (*c->at - '0');
	}
	if (digits > 0 && c->at < c->end && *c->at != ' ' && *c->at != '\t')
		unit = scale_units(*c->at++, unit);
	if (hundredths > 100 * LARGEST)
		hundredths = 100 * LARGEST;
	sign = *relative < 0 ? -1 : 1;
	return (int)(sign * hundredths * unit / 100);
}
