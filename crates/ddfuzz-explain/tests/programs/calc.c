/* A calculator with variables. The bug: a factor in parentheses whose value is zero is taken for a missing
   one, and the parser's depth is not restored. Later the depth selects a frame that is not there. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct frame {
    int open;
    long values[8];
    struct frame *outer;
};

struct parser {
    const char *at;
    struct frame *frames[8];
    int depth;
    long variables[26];
    int errors;
};

static long expression(struct parser *p);

static void skip(struct parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

static long number(struct parser *p)
{
    long value = 0;
    while (isdigit((unsigned char)*p->at))
        value = value * 10 + (*p->at++ - '0');
    return value;
}

static long factor(struct parser *p)
{
    long value = 0;
    skip(p);
    if (*p->at == '(') {
        p->at++;
        p->depth++;
        value = expression(p);
        skip(p);
        if (*p->at == ')')
            p->at++;
        if (value == 0)
            return 1;
        p->depth--;
    } else if (isalpha((unsigned char)*p->at)) {
        value = p->variables[tolower((unsigned char)*p->at++) - 'a'];
    } else if (isdigit((unsigned char)*p->at)) {
        value = number(p);
    } else {
        p->errors++;
        if (*p->at)
            p->at++;
    }
    return value;
}

static long term(struct parser *p)
{
    long value = factor(p);
    for (skip(p); *p->at == '*' || *p->at == '/'; skip(p)) {
        int operation = *p->at++;
        long other = factor(p);
        if (operation == '*')
            value *= other;
        else if (other)
            value /= other;
    }
    return value;
}

static long expression(struct parser *p)
{
    long value = term(p);
    for (skip(p); *p->at == '+' || *p->at == '-'; skip(p)) {
        int operation = *p->at++;
        long other = term(p);
        value = operation == '+' ? value + other : value - other;
    }
    return value;
}

static void record(struct parser *p, long value)
{
    struct frame *frame = p->frames[p->depth];
    frame->values[frame->open & 7] = value;
    frame->open++;
}

int main(void)
{
    struct parser parser;
    char line[256] = "";

    memset(&parser, 0, sizeof parser);
    parser.frames[0] = calloc(1, sizeof(struct frame));
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        parser.at = line;
        if (isalpha((unsigned char)line[0]) && line[1] == '=') {
            parser.at = line + 2;
            parser.variables[tolower((unsigned char)line[0]) - 'a'] = expression(&parser);
            continue;
        }
        long value = expression(&parser);
        record(&parser, value);
        printf("%ld\n", value);
    }
    return parser.errors > 0;
}
