/* What the parts of the unit converter share. */
#ifndef DDFUZZ_UNITS_H
#define DDFUZZ_UNITS_H

#include <stddef.h>

#define DIMENSIONS 8

/* A text within the line at hand; not NUL-terminated. */
struct text {
	const char *at;
	size_t length;
};

/* A number times powers of the base units. */
struct quantity {
	double factor;
	int powers[DIMENSIONS];
};

/* The base units' names, in the order of `powers`. */
extern const char *const base_units[DIMENSIONS];

/* Forgets the units that an earlier run defined. */
void forget_units(void);

/* Defines a unit; 0 when its name is taken or too long, or there are too many. */
int define_unit(struct text name, const struct quantity *value);

/* Looks a unit up: the name itself, its plural, or either after a prefix. 0 when unknown. */
int find_unit(struct text name, struct quantity *value);

/* Reads a whole expression such as `3.5 kg m^2 / s^2`; 0, after a complaint, when it is wrong. */
int read_quantity(struct text expression, struct quantity *value);

#endif
