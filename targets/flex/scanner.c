/* From the nondeterministic automaton to the deterministic one (subset construction). */
#include <string.h>

#include "flex.h"

#define WORDS ((MAX_NODES + 63) / 64)
#define HASH_SIZE 4096
/* Nodes looked at before the rules count as too complicated. */
#define MOST_WORK 20000000

uint8_t class_of[256];
int class_count;
short next_state[MAX_STATES][256];
short accepted[MAX_STATES];
int state_count;

/* The nodes that each state stands for. */
static uint64_t members[MAX_STATES][WORDS];
static short hashed[HASH_SIZE];
static int words;
static long work;

static int holds(const uint8_t *set, int c)
{
	return set[c >> 3] >> (c & 7) & 1;
}

/* Characters that no pattern tells apart form a class; the classes are numbered from 0 in the
 * order of their first characters. */
static void build_classes(void)
{
	class_count = 1;
	memset(class_of, 0, sizeof class_of);
	for (int i = 0; i < node_count; i++) {
		int inside[256], old = class_count;

		if (nodes[i].empty || class_count == 256)
			continue;
		memset(inside, -1, sizeof inside);
		/* The class of a set's first character stays; the others of a class split off. */
		for (int c = 0; c < 256; c++) {
			int first = 0;

			while (class_of[first] != class_of[c] || class_of[first] >= old)
				first++;
			if (holds(nodes[i].set, c) == holds(nodes[i].set, first))
				continue;
			if (inside[class_of[c]] < 0)
				inside[class_of[c]] = class_count++;
			class_of[c] = (uint8_t)inside[class_of[c]];
		}
	}
}

/* Adds a node, and all that can be reached from it without a character. */
static void add_closure(uint64_t *set, int first)
{
	int waiting[MAX_NODES + 1], count = 0;

	waiting[count++] = first;
	while (count > 0) {
		int node = waiting[--count];
		uint64_t bit = (uint64_t)1 << (node & 63);

		work++;
		if (set[node >> 6] & bit)
			continue;
		set[node >> 6] |= bit;
		for (int i = 0; nodes[node].empty && i < 2; i++)
			if (nodes[node].out[i] >= 0 && count < MAX_NODES)
				waiting[count++] = nodes[node].out[i];
	}
}

/* The rule that a state accepts: the first of its nodes'. */
static short accepted_by(const uint64_t *set)
{
	short least = 0;

	for (int i = 0; i < node_count; i++)
		if (set[i >> 6] >> (i & 63) & 1 && nodes[i].accepts > 0 &&
		    (least == 0 || nodes[i].accepts < least))
			least = (short)nodes[i].accepts;
	return least;
}

/* The state that stands for these nodes, made if need be; -1 when there are too many. */
static int state_of(const uint64_t *set)
{
	size_t size = (size_t)words * sizeof *set;
	uint64_t hash = 0;
	int any = 0;

	for (int i = 0; i < words; i++) {
		any |= set[i] != 0;
		hash = (hash ^ set[i]) * 0x9e3779b97f4a7c15u;
	}
	if (!any)
		return JAM;
	for (hash >>= 52;; hash++) {
		short *slot = &hashed[hash % HASH_SIZE];

		if (*slot > 0 && memcmp(members[*slot], set, size) == 0)
			return *slot;
		if (*slot > 0)
			continue;
		if (state_count == MAX_STATES)
			return -1;
		memcpy(members[state_count], set, size);
		accepted[state_count] = accepted_by(set);
		*slot = (short)state_count;
		return state_count++;
	}
}

/* The start states are made without a look at the table of states: both must exist, even if
 * they stand for the same nodes. */
static void build_starts(void)
{
	for (int start = START; start <= START_OF_LINE; start++) {
		memset(members[start], 0, sizeof members[start]);
		for (size_t i = 0; i < rule_count; i++)
			if (!rules[i].at_line_start || start == START_OF_LINE)
				add_closure(members[start], rules[i].first);
		accepted[start] = accepted_by(members[start]);
	}
	state_count = START_OF_LINE + 1;
}

/* The state after `c`, one character of its class; -1 when there are too many. */
static int step(const uint64_t *from, int c)
{
	uint64_t to[WORDS];

	memset(to, 0, sizeof to);
	for (int i = 0; i < node_count; i++) {
		work++;
		if (from[i >> 6] >> (i & 63) & 1 && !nodes[i].empty && holds(nodes[i].set, c))
			add_closure(to, nodes[i].out[0]);
	}
	return state_of(to);
}

int build_scanner(void)
{
	int sample[256];

	build_classes();
	for (int c = 255; c >= 0; c--)
		sample[class_of[c]] = c;
	words = (node_count + 63) / 64;
	work = 0;
	memset(hashed, 0, sizeof hashed);
	build_starts();
	for (int state = START; state < state_count; state++) {
		for (int class = 0; class < class_count; class++) {
			int next = step(members[state], sample[class]);

			if (next < 0 || work > MOST_WORK)
				return 0;
			next_state[state][class] = (short)next;
		}
	}
	return 1;
}
