/* What the parts of the scanner generator share. */
#ifndef DDFUZZ_FLEX_H
#define DDFUZZ_FLEX_H

#include <stddef.h>
#include <stdint.h>

#define MAX_RULES 200
#define MAX_DEFINITIONS 100
#define MAX_NODES 2000
#define MAX_STATES 1000
/* Scanner states: none left, the start, and the start at the beginning of a line. */
#define JAM 0
#define START 1
#define START_OF_LINE 2

/* A piece of text; not NUL-terminated. */
struct text {
	const char *at;
	size_t length;
};

/* A named pattern of the first section. */
struct definition {
	struct text name;
	struct text pattern;
};

/* A rule: its automaton's first node, its action, and its anchors. */
struct rule {
	int first;
	struct text action;
	int at_line_start;
	int at_line_end;
};

/* A node of the nondeterministic automaton: it goes to `out[0]` over the characters in `set`,
 * or to both without one if `empty`; -1 is nowhere. `accepts` is a rule's number + 1, or 0. */
struct node {
	uint8_t set[32];
	int empty;
	int out[2];
	int accepts;
};

extern struct definition definitions[MAX_DEFINITIONS];
extern size_t definition_count;
extern struct rule rules[MAX_RULES];
extern size_t rule_count;
extern struct node nodes[MAX_NODES];
extern int node_count;
extern int caseless;

/* line.c: starts on an input; 0 when there is no memory. */
int lines_begin(const uint8_t *data, size_t size);
/* Reads the next line into the line buffer; 0 at the end of the input. */
int next_line(struct text *line);
/* The number of the line read last, from 1. */
unsigned line_number(void);

/* pattern.c: builds a rule's automaton from its pattern; 0 when the pattern is wrong or there
 * are too many nodes. */
int compile_pattern(struct text pattern, struct rule *rule, int number);

/* scanner.c: the deterministic automaton of all rules. */
extern uint8_t class_of[256];
extern int class_count;
extern short next_state[MAX_STATES][256];
extern short accepted[MAX_STATES];
extern int state_count;
/* Builds it; 0 when it is too large. */
int build_scanner(void);

/* emit.c: writes the scanner as C. */
void emit_scanner(struct text prologue, struct text local, struct text epilogue);

#endif
