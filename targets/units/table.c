/* The units and prefixes that units knows. */
#include <string.h>

#include "units.h"

/* Units that one input may define, and the longest name of one. */
#define DEFINABLE 100
#define NAME_SIZE 24

const char *const base_units[DIMENSIONS] = {"m", "kg", "s", "A", "K", "mol", "cd", "bit"};

/* Powers of m, kg, s, A, K, mol, cd, bit. */
static const struct unit {
	const char *name;
	struct quantity value;
} units[] = {
	/* length */
	{"m", {1, {1}}},
	{"meter", {1, {1}}},
	{"metre", {1, {1}}},
	{"inch", {0.0254, {1}}},
	{"in", {0.0254, {1}}},
	{"foot", {0.3048, {1}}},
	{"feet", {0.3048, {1}}},
	{"ft", {0.3048, {1}}},
	{"yard", {0.9144, {1}}},
	{"yd", {0.9144, {1}}},
	{"fathom", {1.8288, {1}}},
	{"rod", {5.0292, {1}}},
	{"furlong", {201.168, {1}}},
	{"mile", {1609.344, {1}}},
	{"mi", {1609.344, {1}}},
	{"nmile", {1852, {1}}},
	{"lightyear", {9460730472580800.0, {1}}},
	{"parsec", {3.0856775814913673e16, {1}}},
	{"angstrom", {1e-10, {1}}},
	/* area and volume */
	{"acre", {4046.8564224, {2}}},
	{"hectare", {10000, {2}}},
	{"liter", {0.001, {3}}},
	{"litre", {0.001, {3}}},
	{"l", {0.001, {3}}},
	{"gallon", {0.003785411784, {3}}},
	{"pint", {0.000473176473, {3}}},
	/* mass */
	{"g", {0.001, {0, 1}}},
	{"gram", {0.001, {0, 1}}},
	{"tonne", {1000, {0, 1}}},
	{"pound", {0.45359237, {0, 1}}},
	{"lb", {0.45359237, {0, 1}}},
	{"ounce", {0.028349523125, {0, 1}}},
	{"oz", {0.028349523125, {0, 1}}},
	{"stone", {6.35029318, {0, 1}}},
	{"carat", {0.0002, {0, 1}}},
	/* time */
	{"s", {1, {0, 0, 1}}},
	{"sec", {1, {0, 0, 1}}},
	{"second", {1, {0, 0, 1}}},
	{"min", {60, {0, 0, 1}}},
	{"minute", {60, {0, 0, 1}}},
	{"h", {3600, {0, 0, 1}}},
	{"hour", {3600, {0, 0, 1}}},
	{"day", {86400, {0, 0, 1}}},
	{"week", {604800, {0, 0, 1}}},
	{"fortnight", {1209600, {0, 0, 1}}},
	{"year", {31556925.9747, {0, 0, 1}}},
	{"hertz", {1, {0, 0, -1}}},
	{"Hz", {1, {0, 0, -1}}},
	/* speed */
	{"mph", {0.44704, {1, 0, -1}}},
	{"knot", {1852.0 / 3600, {1, 0, -1}}},
	{"lightspeed", {299792458, {1, 0, -1}}},
	/* electricity */
	{"A", {1, {0, 0, 0, 1}}},
	{"amp", {1, {0, 0, 0, 1}}},
	{"ampere", {1, {0, 0, 0, 1}}},
	{"coulomb", {1, {0, 0, 1, 1}}},
	{"volt", {1, {2, 1, -3, -1}}},
	{"V", {1, {2, 1, -3, -1}}},
	{"ohm", {1, {2, 1, -3, -2}}},
	{"farad", {1, {-2, -1, 4, 2}}},
	/* force, pressure, energy, power */
	{"newton", {1, {1, 1, -2}}},
	{"N", {1, {1, 1, -2}}},
	{"lbf", {4.4482216152605, {1, 1, -2}}},
	{"pascal", {1, {-1, 1, -2}}},
	{"Pa", {1, {-1, 1, -2}}},
	{"bar", {100000, {-1, 1, -2}}},
	{"atm", {101325, {-1, 1, -2}}},
	{"psi", {6894.757293168361, {-1, 1, -2}}},
	{"joule", {1, {2, 1, -2}}},
	{"J", {1, {2, 1, -2}}},
	{"calorie", {4.184, {2, 1, -2}}},
	{"cal", {4.184, {2, 1, -2}}},
	{"btu", {1055.05585262, {2, 1, -2}}},
	{"watt", {1, {2, 1, -3}}},
	{"W", {1, {2, 1, -3}}},
	{"horsepower", {745.6998715822702, {2, 1, -3}}},
	{"hp", {745.6998715822702, {2, 1, -3}}},
	{"gravity", {9.80665, {1, 0, -2}}},
	/* temperature differences, amounts, light, information */
	{"K", {1, {0, 0, 0, 0, 1}}},
	{"kelvin", {1, {0, 0, 0, 0, 1}}},
	{"mol", {1, {0, 0, 0, 0, 0, 1}}},
	{"mole", {1, {0, 0, 0, 0, 0, 1}}},
	{"cd", {1, {0, 0, 0, 0, 0, 0, 1}}},
	{"candela", {1, {0, 0, 0, 0, 0, 0, 1}}},
	{"bit", {1, {0, 0, 0, 0, 0, 0, 0, 1}}},
	{"byte", {8, {0, 0, 0, 0, 0, 0, 0, 1}}},
	/* pure numbers */
	{"pi", {3.14159265358979323846, {0}}},
	{"dozen", {12, {0}}},
	{"score", {20, {0}}},
	{"gross", {144, {0}}},
	{"percent", {0.01, {0}}},
	{"degree", {0.017453292519943295, {0}}},
	{"radian", {1, {0}}},
};

static const struct prefix {
	const char *name;
	double factor;
} prefixes[] = {
	{"kibi", 1024}, {"mebi", 1048576}, {"gibi", 1073741824},
	{"tera", 1e12}, {"giga", 1e9}, {"mega", 1e6}, {"kilo", 1e3}, {"hecto", 1e2},
	{"deci", 1e-1}, {"centi", 1e-2}, {"milli", 1e-3}, {"micro", 1e-6}, {"nano", 1e-9},
	{"pico", 1e-12}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"d", 1e-1},
	{"c", 1e-2}, {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}, {"p", 1e-12},
};

static struct {
	char name[NAME_SIZE];
	size_t length;
	struct quantity value;
} defined[DEFINABLE];
static size_t defined_count;

void forget_units(void)
{
	defined_count = 0;
}

static int is(struct text text, const char *name)
{
	return strlen(name) == text.length && memcmp(name, text.at, text.length) == 0;
}

/* Looks up exactly this name. */
static int find_name(struct text name, struct quantity *value)
{
	for (size_t i = 0; i < defined_count; i++) {
		if (defined[i].length == name.length &&
		    memcmp(defined[i].name, name.at, name.length) == 0) {
			*value = defined[i].value;
			return 1;
		}
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (is(name, units[i].name)) {
			*value = units[i].value;
			return 1;
		}
	}
	return 0;
}

/* Looks up this name, or the one of which it is the plural. */
static int find_plural(struct text name, struct quantity *value)
{
	struct text stem = name;

	if (find_name(name, value))
		return 1;
	if (name.length < 3 || name.at[name.length - 1] != 's')
		return 0;
	stem.length = name.length - 1;
	if (find_name(stem, value))
		return 1;
	if (name.at[name.length - 2] != 'e')
		return 0;
	stem.length = name.length - 2;
	return find_name(stem, value);
}

int find_unit(struct text name, struct quantity *value)
{
	if (name.length >= NAME_SIZE)
		return 0;
	if (find_plural(name, value))
		return 1;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t length = strlen(prefixes[i].name);
		struct text rest = {name.at + length, name.length - length};

		if (name.length <= length || memcmp(name.at, prefixes[i].name, length) != 0)
			continue;
		if (find_plural(rest, value)) {
			value->factor *= prefixes[i].factor;
			return 1;
		}
	}
	return 0;
}

int define_unit(struct text name, const struct quantity *value)
{
	struct quantity taken;

	if (name.length == 0 || name.length >= NAME_SIZE || defined_count == DEFINABLE ||
	    find_name(name, &taken))
		return 0;
	memcpy(defined[defined_count].name, name.at, name.length);
	defined[defined_count].length = name.length;
	defined[defined_count].value = *value;
	defined_count++;
	return 1;
}
