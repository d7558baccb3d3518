/* Expressions of numbers and units. */
#include <stdlib.h>
#include <string.h>

#include "../complain.h"
#include "units.h"

#define DEEPEST 40
#define LARGEST_POWER 1000
#define NUMBER_SIZE 40

/* The rest of the expression, and how deep in brackets it stands. */
struct reader {
	const char *at;
	const char *end;
	int depth;
};

static int read_product(struct reader *r, struct quantity *value);

static int peek(const struct reader *r)
{
	return r->at < r->end ? *r->at : 0;
}

static void skip_blanks(struct reader *r)
{
	while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\r')
		r->at++;
}

static int is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static int is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* value *= other ^ sign. */
static int multiply(struct quantity *value, const struct quantity *other, int sign)
{
	if (sign < 0 && other->factor == 0) {
		complain("division by zero");
		return 0;
	}
	value->factor = sign < 0 ? value->factor / other->factor : value->factor * other->factor;
	for (int i = 0; i < DIMENSIONS; i++) {
		value->powers[i] += sign * other->powers[i];
		if (abs(value->powers[i]) > LARGEST_POWER) {
			complain("power out of range");
			return 0;
		}
	}
	return 1;
}

/* Copies one character of a number, if there is room for it. */
static void keep_digit(struct reader *r, char *number, size_t *length)
{
	if (*length < NUMBER_SIZE - 1)
		number[(*length)++] = *r->at;
	r->at++;
}

static int read_number(struct reader *r, struct quantity *value)
{
	char number[NUMBER_SIZE];
	size_t length = 0;

	while (is_digit(peek(r)) || peek(r) == '.')
		keep_digit(r, number, &length);
	if (peek(r) == 'e' && r->end - r->at > 1 &&
	    (is_digit(r->at[1]) || ((r->at[1] == '-' || r->at[1] == '+') && r->end - r->at > 2 &&
				    is_digit(r->at[2])))) {
		keep_digit(r, number, &length);
		keep_digit(r, number, &length);
		while (is_digit(peek(r)))
			keep_digit(r, number, &length);
	}
	number[length] = '\0';
	memset(value, 0, sizeof *value);
	value->factor = strtod(number, NULL);
	return 1;
}

static int read_name(struct reader *r, struct quantity *value)
{
	struct text name = {r->at, 0};

	while (is_letter(peek(r)))
		r->at++;
	name.length = (size_t)(r->at - name.at);
	if (find_unit(name, value))
		return 1;
	complain("unknown unit `%.*s'", name.length > 30 ? 30 : (int)name.length, name.at);
	return 0;
}

/* An integer power behind a factor: `m^2`, `s^-1`, `m2`. 1 where there is none. */
static int read_power(struct reader *r, int after_name)
{
	int sign = 1, power = 0;

	if (peek(r) == '^') {
		r->at++;
		if (peek(r) == '-') {
			sign = -1;
			r->at++;
		}
	} else if (!after_name || !is_digit(peek(r))) {
		return 1;
	}
	while (is_digit(peek(r)) && power <= LARGEST_POWER)
		power = power * 10 + (*r->at++ - '0');
	return sign * power;
}

static int raise(struct quantity *value, int power)
{
	struct quantity base = *value;

	if (abs(power) > LARGEST_POWER) {
		complain("power out of range");
		return 0;
	}
	memset(value, 0, sizeof *value);
	value->factor = 1;
	for (int i = 0; i < abs(power); i++)
		if (!multiply(value, &base, power < 0 ? -1 : 1))
			return 0;
	return 1;
}

static int read_factor(struct reader *r, struct quantity *value)
{
	int name = is_letter(peek(r)), read;

	if (name) {
		read = read_name(r, value);
	} else if (is_digit(peek(r)) || peek(r) == '.') {
		read = read_number(r, value);
	} else if (peek(r) == '(' && r->depth < DEEPEST) {
		r->at++;
		r->depth++;
		read = read_product(r, value) && peek(r) == ')';
		r->depth--;
		r->at += read;
	} else {
		read = 0;
	}
	return read && raise(value, read_power(r, name));
}

/* Factors up to the end or a closing bracket; `/` and `per` divide by the one that follows. */
static int read_product(struct reader *r, struct quantity *value)
{
	memset(value, 0, sizeof *value);
	value->factor = 1;
	skip_blanks(r);
	do {
		struct quantity factor;
		int sign = 1;

		if (peek(r) == '*' || peek(r) == '/') {
			sign = *r->at++ == '/' ? -1 : 1;
		} else if (r->end - r->at > 4 && memcmp(r->at, "per ", 4) == 0) {
			sign = -1;
			r->at += 4;
		}
		skip_blanks(r);
		if (!read_factor(r, &factor) || !multiply(value, &factor, sign))
			return 0;
		skip_blanks(r);
	} while (r->at < r->end && peek(r) != ')');
	return 1;
}

int read_quantity(struct text expression, struct quantity *value)
{
	struct reader r = {expression.at, expression.at + expression.length, 0};
	unsigned before = complaints();

	if (read_product(&r, value) && r.at == r.end)
		return 1;
	if (complaints() == before)
		complain("cannot read this expression");
	return 0;
}
