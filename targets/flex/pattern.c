/* Patterns: from regular expressions to a nondeterministic automaton (Thompson's). */
#include <string.h>

#include "flex.h"

#define DEEPEST 60

struct node nodes[MAX_NODES];
int node_count;

/* A part of the automaton: entered at `first`, left from the dangling empty node `last`. */
struct part {
	int first;
	int last;
};

/* The pattern being read. `failed` stops everything. */
static const char *at, *end;
static int depth, failed;

static struct part read_alternatives(void);

static int new_node(int empty, int out0, int out1)
{
	struct node *node;

	if (node_count == MAX_NODES) {
		failed = 1;
		return 0;
	}
	node = &nodes[node_count];
	memset(node, 0, sizeof *node);
	node->empty = empty;
	node->out[0] = out0;
	node->out[1] = out1;
	return node_count++;
}

static struct part empty_part(void)
{
	int node = new_node(1, -1, -1);

	return (struct part){node, node};
}

/* A part that takes one of the characters in `set`. */
static struct part set_part(const uint8_t *set)
{
	struct part part;

	part.last = new_node(1, -1, -1);
	part.first = new_node(0, part.last, -1);
	memcpy(nodes[part.first].set, set, sizeof nodes[part.first].set);
	return part;
}

static void add(uint8_t *set, int c)
{
	set[(uint8_t)c >> 3] |= (uint8_t)(1 << (c & 7));
	if (caseless && ((c | 32) >= 'a' && (c | 32) <= 'z'))
		set[(uint8_t)(c ^ 32) >> 3] |= (uint8_t)(1 << (c & 7));
}

static struct part character_part(int c)
{
	uint8_t set[32] = {0};

	add(set, c);
	return set_part(set);
}

static struct part in_sequence(struct part left, struct part right)
{
	nodes[left.last].out[0] = right.first;
	return (struct part){left.first, right.last};
}

static int digit_value(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
}

/* Up to `most` digits of a number in `base`. */
static int read_code(int base, int most)
{
	int value = 0;

	for (; most > 0 && at < end && digit_value(*at) < base; most--)
		value = value * base + digit_value(*at++);
	return value;
}

/* The character that an escape stands for; the backslash is read already. */
static int read_escape(void)
{
	static const char letters[] = "abfnrtv", codes[] = "\a\b\f\n\r\t\v";
	const char *letter;

	if (at == end) {
		failed = 1;
		return 0;
	}
	if (*at >= '0' && *at <= '7')
		return read_code(8, 3) & 255;
	if (*at == 'x') {
		at++;
		return read_code(16, 2);
	}
	letter = *at == '\0' ? NULL : strchr(letters, *at);
	return (uint8_t)(letter == NULL ? *at++ : codes[at++, letter - letters]);
}

static int read_class_character(void)
{
	if (*at != '\\')
		return (uint8_t)*at++;
	at++;
	return read_escape();
}

/* `[...]`; the opening bracket is read already. */
static struct part read_class(void)
{
	uint8_t set[32] = {0};
	int negated = at < end && *at == '^';

	at += negated;
	do {
		int from, to;

		if (at == end) {
			failed = 1;
			return empty_part();
		}
		from = to = read_class_character();
		if (end - at > 1 && at[0] == '-' && at[1] != ']') {
			at++;
			to = read_class_character();
		}
		for (int c = from; c <= to; c++)
			add(set, c);
	} while (at < end && *at != ']');
	failed |= at == end;
	at += at < end;
	for (int i = 0; negated && i < 32; i++)
		set[i] = (uint8_t)~set[i];
	return set_part(set);
}

/* `"..."`; the opening quote is read already. */
static struct part read_string(void)
{
	struct part part = empty_part();

	while (at < end && *at != '"' && !failed)
		part = in_sequence(part, character_part(read_class_character()));
	failed |= at == end;
	at += at < end;
	return part;
}

/* `{NAME}`; the opening brace is read already. */
static struct part read_definition(void)
{
	const char *close = memchr(at, '}', (size_t)(end - at)), *outer_end = end;
	size_t length = close == NULL ? 0 : (size_t)(close - at);
	struct part part = empty_part();

	for (size_t i = 0; length > 0 && i < definition_count; i++) {
		if (definitions[i].name.length != length ||
		    memcmp(definitions[i].name.at, at, length) != 0)
			continue;
		at = definitions[i].pattern.at;
		end = at + definitions[i].pattern.length;
		part = in_sequence(part, read_alternatives());
		failed |= at != end;
		at = close + 1;
		end = outer_end;
		return part;
	}
	failed = 1;
	return part;
}

static struct part read_group(void)
{
	struct part part = read_alternatives();

	if (at == end || *at != ')')
		failed = 1;
	else
		at++;
	return part;
}

static struct part read_atom(void)
{
	static const uint8_t newline[32] = {0, 1 << ('\n' & 7)};
	uint8_t any[32];
	int c = (uint8_t)*at++;

	switch (c) {
	case '(':
		return read_group();
	case '[':
		return read_class();
	case '"':
		return read_string();
	case '{':
		return read_definition();
	case '\\':
		return character_part(read_escape());
	case '.':
		for (int i = 0; i < 32; i++)
			any[i] = (uint8_t)~newline[i];
		return set_part(any);
	case '*':
	case '+':
	case '?':
	case '/':
	case '$':
	case '^':
		failed = 1;
		return empty_part();
	default:
		return character_part(c);
	}
}

static struct part optional(struct part part)
{
	struct part whole;

	whole.last = new_node(1, -1, -1);
	whole.first = new_node(1, part.first, whole.last);
	nodes[part.last].out[0] = whole.last;
	return whole;
}

static struct part repeated(struct part part)
{
	struct part whole;

	whole.last = new_node(1, -1, -1);
	whole.first = new_node(1, part.first, whole.last);
	nodes[part.last].out[0] = whole.first;
	return whole;
}

/* `{n}`, `{n,}` or `{n,m}`; -1 for m stands for any number of times. */
static void read_bounds(int *least, int *most)
{
	at++;
	*least = *most = read_code(10, 3);
	if (at < end && *at == ',') {
		at++;
		*most = at < end && *at != '}' ? read_code(10, 3) : -1;
	}
	if (at == end || *at != '}' || (*most >= 0 && *most < *least))
		failed = 1;
	else
		at++;
}

/* Reads the atom at `start` again for each time it may occur. */
static struct part repeat_atom(const char *start, int least, int most)
{
	const char *behind = at;
	struct part part = empty_part();

	for (int i = 0; i < (most < 0 ? least + 1 : most) && !failed; i++) {
		struct part next;

		at = start;
		next = read_atom();
		if (i >= least)
			next = most < 0 ? repeated(next) : optional(next);
		part = in_sequence(part, next);
	}
	at = behind;
	return part;
}

/* An atom and what says how often it occurs. */
static struct part read_factor(void)
{
	const char *start = at;
	struct part part = read_atom();
	int least, most;

	while (at < end && !failed) {
		if (*at == '*') {
			part = repeated(part);
		} else if (*at == '+') {
			part = in_sequence(part, repeat_atom(start, 0, -1));
		} else if (*at == '?') {
			part = optional(part);
		} else if (*at == '{' && end - at > 1 && at[1] >= '0' && at[1] <= '9') {
			read_bounds(&least, &most);
			if (!failed)
				part = repeat_atom(start, least, most);
			continue;
		} else {
			break;
		}
		at++;
	}
	return part;
}

static struct part read_sequence(void)
{
	struct part part = empty_part();

	while (at < end && *at != '|' && *at != ')' && !failed)
		part = in_sequence(part, read_factor());
	return part;
}

static struct part read_alternatives(void)
{
	struct part part;

	if (++depth > DEEPEST)
		failed = 1;
	part = read_sequence();
	while (at < end && *at == '|' && !failed) {
		struct part other, whole;

		at++;
		other = read_sequence();
		whole.last = new_node(1, -1, -1);
		whole.first = new_node(1, part.first, other.first);
		nodes[part.last].out[0] = whole.last;
		nodes[other.last].out[0] = whole.last;
		part = whole;
	}
	depth--;
	return part;
}

int compile_pattern(struct text pattern, struct rule *rule, int number)
{
	struct part part;

	at = pattern.at;
	end = at + pattern.length;
	depth = failed = 0;
	rule->at_line_start = at < end && *at == '^';
	at += rule->at_line_start;
	rule->at_line_end = end - at > 1 && end[-1] == '$' && end[-2] != '\\';
	end -= rule->at_line_end;
	failed |= at == end;
	part = read_alternatives();
	failed |= at != end;
	if (rule->at_line_end)
		part = in_sequence(part, character_part('\n'));
	nodes[part.last].accepts = number + 1;
	rule->first = part.first;
	return !failed;
}
