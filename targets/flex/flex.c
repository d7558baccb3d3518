/* flex: generates a scanner in C from rules.
 *
 *   definitions: `NAME PATTERN`, C between `%{` and `%}` or on indented lines, `%option caseless`
 *   %%
 *   rules: `PATTERN ACTION`; an action `{` goes on until its closing brace, `|` is the next one's
 *   %%
 *   C code, copied as it is
 *
 * Patterns: x \x . [a-z] [^a-z] "x" (r) r* r+ r? r{2,4} r|s {NAME} ^r r$
 * The bug stands in line.c. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "../complain.h"
#include "../target.h"
#include "flex.h"

struct definition definitions[MAX_DEFINITIONS];
size_t definition_count;
struct rule rules[MAX_RULES];
size_t rule_count;
int caseless;

/* Text that outlives its line: names, patterns and actions; and apart from it the lines of C, so
 * that those of a section stand together. Neither outgrows the input. */
static char *kept, *code;
static size_t kept_size, code_size;

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int is(struct text line, const char *word)
{
	return line.length == strlen(word) && memcmp(line.at, word, line.length) == 0;
}

static struct text keep(struct text text)
{
	struct text copy = {kept + kept_size, text.length};

	memcpy(kept + kept_size, text.at, text.length);
	kept_size += text.length;
	return copy;
}

/* Keeps a line of C with its newline, behind the section's lines before it. */
static void keep_code(struct text line, struct text *section)
{
	if (section->length == 0)
		section->at = code + code_size;
	memcpy(code + code_size, line.at, line.length);
	code_size += line.length;
	code[code_size++] = '\n';
	section->length += line.length + 1;
}

static struct text trim(struct text text)
{
	while (text.length > 0 && is_blank(*text.at)) {
		text.at++;
		text.length--;
	}
	while (text.length > 0 && is_blank(text.at[text.length - 1]))
		text.length--;
	return text;
}

/* The length of the pattern at the start of a rule: up to the first blank that is not quoted. */
static size_t pattern_length(struct text line)
{
	char inside = 0;
	size_t i;

	for (i = 0; i < line.length; i++) {
		char c = line.at[i];

		if (c == '\\')
			i++;
		else if (inside != 0)
			inside = c == inside ? 0 : inside;
		else if (c == '"')
			inside = '"';
		else if (c == '[')
			inside = ']';
		else if (is_blank(c))
			break;
	}
	return i < line.length ? i : line.length;
}

static void read_option(struct text line)
{
	static const char caseless_option[] = "%option caseless";

	if (is(line, caseless_option))
		caseless = 1;
	else
		complain("line %u: unknown directive", line_number());
}

static void read_definition(struct text line)
{
	size_t length = 0;
	struct text name = line, pattern = line;

	while (length < line.length && (line.at[length] == '_' ||
					((line.at[length] | 32) >= 'a' && (line.at[length] | 32) <= 'z') ||
					(length > 0 && line.at[length] >= '0' && line.at[length] <= '9')))
		length++;
	name.length = length;
	pattern.at += length;
	pattern.length -= length;
	if (length == 0 || pattern.length == 0 || !is_blank(*pattern.at)) {
		complain("line %u: bad definition", line_number());
		return;
	}
	if (definition_count == MAX_DEFINITIONS) {
		complain("line %u: too many definitions", line_number());
		return;
	}
	definitions[definition_count].name = keep(name);
	definitions[definition_count].pattern = keep(trim(pattern));
	definition_count++;
}

/* Reads the first section; 0 when the input ends in it. */
static int read_definitions(struct text *prologue)
{
	struct text line;
	int verbatim = 0;

	while (next_line(&line)) {
		if (verbatim && is(line, "%}"))
			verbatim = 0;
		else if (verbatim || (line.length > 0 && is_blank(*line.at)))
			keep_code(line, prologue);
		else if (is(line, "%{"))
			verbatim = 1;
		else if (is(line, "%%"))
			return 1;
		else if (line.length > 0 && *line.at == '%')
			read_option(line);
		else if (line.length > 0)
			read_definition(line);
	}
	return 0;
}

/* How many more braces a line opens than it closes; those in quotes do not count. */
static long open_braces(struct text line)
{
	char quote = 0;
	long open = 0;

	for (size_t i = 0; i < line.length; i++) {
		char c = line.at[i];

		if (c == '\\')
			i++;
		else if (quote != 0)
			quote = c == quote ? 0 : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '{')
			open++;
		else if (c == '}')
			open--;
	}
	return open;
}

/* Reads an action: the rest of the rule's line, and more lines until its braces are closed. */
static struct text read_action(struct text first)
{
	struct text action = keep(first), line;
	long open = *first.at == '{' ? open_braces(first) : 0;

	while (open > 0 && next_line(&line)) {
		kept[kept_size++] = '\n';
		keep(line);
		action.length += line.length + 1;
		open += open_braces(line);
	}
	if (open > 0)
		complain("line %u: this action has no end", line_number());
	return action;
}

static void read_rule(struct text line)
{
	struct rule *rule = &rules[rule_count];
	struct text pattern = {line.at, pattern_length(line)};
	struct text action = {line.at + pattern.length, line.length - pattern.length};
	static const struct text nothing = {";", 1};

	if (rule_count == MAX_RULES) {
		complain("line %u: too many rules", line_number());
		return;
	}
	memset(rule, 0, sizeof *rule);
	if (!compile_pattern(pattern, rule, (int)rule_count)) {
		complain("line %u: %s", line_number(),
			 node_count == MAX_NODES ? "too many patterns" : "bad pattern");
		return;
	}
	action = trim(action);
	rule->action = action.length > 0 ? read_action(action) : nothing;
	rule_count++;
}

/* Reads the second section; C on indented lines before its first rule goes into the scanner. */
static int read_rules(struct text *local)
{
	struct text line;

	while (next_line(&line)) {
		if (is(line, "%%"))
			return 1;
		if (line.length > 0 && is_blank(*line.at) && rule_count == 0)
			keep_code(line, local);
		else if (trim(line).length > 0)
			read_rule(line);
	}
	return 0;
}

static void generate(void)
{
	struct text prologue = {NULL, 0}, local = {NULL, 0}, epilogue = {NULL, 0}, line;
	int sections = read_definitions(&prologue);

	if (sections && read_rules(&local))
		while (next_line(&line))
			keep_code(line, &epilogue);
	if (!sections)
		complain("line %u: no rules", line_number());
	else if (complaints() == 0 && !build_scanner())
		complain("the rules are too complicated");
	if (complaints() == 0)
		emit_scanner(prologue, local, epilogue);
}

int target_main(const uint8_t *data, size_t size)
{
	complain_as("flex");
	definition_count = rule_count = 0;
	node_count = 0;
	caseless = 0;
	kept_size = code_size = 0;
	/* Each line of C gains at most a newline that the input's last line may lack. */
	kept = malloc(size + 1);
	code = malloc(size + 1);
	if (kept == NULL || code == NULL || !lines_begin(data, size))
		complain("out of memory");
	else
		generate();
	free(kept);
	free(code);
	kept = code = NULL;
	return complaints() > 0;
}
