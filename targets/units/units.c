/* units: converts between units of measurement.
 *
 *   2 km to mile          how many miles two kilometres are
 *   3 hour                what it is in base units
 *   smoot = 67 inch       defines a unit
 *   # TEXT                a comment
 *
 * The bug (after the fuzz studies of Miller et al.; Hildebrandt and Zeller, ISSTA 2000, had 77
 * 8-bit characters left): characters with the high bit set are taken out of the line and kept
 * aside, to be named in one complaint at its end. Nobody counts them: the 77th of a line is
 * written beyond the place for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../complain.h"
#include "../guarded.h"
#include "../target.h"
#include "units.h"

/* 8-bit characters of a line that are kept for the complaint, and those that it names. */
#define ODD_SIZE 76
#define ODD_NAMED 8

/* The line at hand without its 8-bit characters, with room for the whole input. */
static char *line;
static size_t line_length;

static uint8_t *odd;
static size_t odd_count;

/* Keeps an 8-bit character for the complaint. */
static __attribute__((noinline)) void keep_odd(uint8_t c)
{
#ifdef DDFUZZ_FIXED
	/* What there is no place for need not be named. */
	if (odd_count == ODD_SIZE)
		return;
#endif
	odd[odd_count++] = c;
}

static void complain_of_odd(void)
{
	char named[4 * ODD_NAMED + 1] = "";

	for (size_t i = 0; i < odd_count && i < ODD_NAMED; i++)
		sprintf(named + 4 * i, "\\%03o", odd[i]);
	complain("8-bit characters ignored: %s%s", named, odd_count > ODD_NAMED ? " ..." : "");
}

/* Writes what stands behind the factor, as in `kg m / s^2`. */
static void show_powers(const struct quantity *value)
{
	for (int i = 0; i < DIMENSIONS; i++) {
		if (value->powers[i] > 0)
			printf(" %s", base_units[i]);
		if (value->powers[i] > 1)
			printf("^%d", value->powers[i]);
	}
	for (int i = 0; i < DIMENSIONS; i++) {
		if (value->powers[i] < 0)
			printf(" / %s", base_units[i]);
		if (value->powers[i] < -1)
			printf("^%d", -value->powers[i]);
	}
}

static void show_text(struct text text)
{
	fwrite(text.at, 1, text.length, stdout);
}

static struct text trimmed(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return (struct text){at, (size_t)(end - at)};
}

static void convert(struct text from, struct text to)
{
	struct quantity have, want;

	if (!read_quantity(from, &have) || !read_quantity(to, &want))
		return;
	if (memcmp(have.powers, want.powers, sizeof have.powers) != 0) {
		printf("conformability error:");
		printf(" %.6g", have.factor);
		show_powers(&have);
		printf(" is not %.6g", want.factor);
		show_powers(&want);
		printf("\n");
	} else if (want.factor == 0) {
		complain("division by zero");
	} else {
		show_text(from);
		printf(" = %.6g ", have.factor / want.factor);
		show_text(to);
		printf("\n");
	}
}

static void reduce(struct text expression)
{
	struct quantity value;

	if (!read_quantity(expression, &value))
		return;
	show_text(expression);
	printf(" = %.6g", value.factor);
	show_powers(&value);
	printf("\n");
}

static void define(struct text name, struct text expression)
{
	struct quantity value;

	for (size_t i = 0; i < name.length; i++) {
		if ((name.at[i] | 32) < 'a' || (name.at[i] | 32) > 'z') {
			complain("a unit's name has letters only");
			return;
		}
	}
	if (read_quantity(expression, &value) && !define_unit(name, &value))
		complain("this unit cannot be defined");
}

/* Where ` to ` begins in the line, or NULL. */
static const char *find_to(struct text text)
{
	const char *end = text.at + text.length;

	for (const char *at = text.at; end - at >= 4; at++) {
		at = memchr(at, ' ', (size_t)(end - at));
		if (at == NULL || end - at < 4)
			return NULL;
		if (memcmp(at, " to ", 4) == 0)
			return at;
	}
	return NULL;
}

static void answer_line(void)
{
	struct text text = trimmed(line, line + line_length);
	const char *end = text.at + text.length, *to, *equals;

	if (text.length == 0 || *text.at == '#')
		return;
	equals = memchr(text.at, '=', text.length);
	to = find_to(text);
	if (equals != NULL)
		define(trimmed(text.at, equals), trimmed(equals + 1, end));
	else if (to != NULL)
		convert(trimmed(text.at, to), trimmed(to + 4, end));
	else
		reduce(text);
}

static void end_line(void)
{
	if (odd_count > 0)
		complain_of_odd();
	answer_line();
	line_length = 0;
	odd_count = 0;
}

int target_main(const uint8_t *data, size_t size)
{
	complain_as("units");
	forget_units();
	line_length = 0;
	odd_count = 0;
	if (odd == NULL)
		odd = guarded_buffer(ODD_SIZE);
	line = malloc(size + 1);
	if (odd == NULL || line == NULL) {
		complain("out of memory");
		free(line);
		return 1;
	}
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '\n')
			end_line();
		else if (data[i] >= 0x80)
			keep_odd(data[i]);
		else
			line[line_length++] = (char)data[i];
	}
	end_line();
	free(line);
	line = NULL;
	return complaints() > 0;
}
