/* A calculator: one expression a line, by recursive descent; and a stack machine: `: 1 2 + .` */
#define _GNU_SOURCE
#include "ground.h"
#include <assert.h>
#include <ctype.h>

struct node { int kind; long value; struct node *left, *right; };
typedef long visitor(struct node *, long);
typedef long function(long, long);

static const char *at;
static long variables[26];
static int nesting, negations, signs[8];
static long stack[32];
static int top;

static long plus(long a, long b) { return a + b; }
static long larger(long a, long b) { return a > b ? a : b; }

/* `avg` was announced and never written. */
static struct { const char *name; function *call; } functions[] = {
    {"add", plus}, {"max", larger}, {"avg", NULL}, {"min", NULL},
};

/* Reports any mistake of the user, as it should; but some of what ends here is a bug of ours. */
static __attribute__((noinline, noreturn)) void die(const char *what, long number)
{
    fflush(stdout);
    fprintf(stderr, "calc: %s (%ld)\n", what, number);
    abort();
}

static long expression(void);

static void skip(void)
{
    while (*at == ' ')
        at++;
}

static inline __attribute__((always_inline)) void check_name(char name)
{
    if (!islower((unsigned char)name))
        canary("name-not-checked-before");
    assert(islower((unsigned char)name));
}

static __attribute__((noinline)) long load(void)
{
    char name = *++at;
    check_name(name);
    at++;
    return variables[name - 'a'];
}

static __attribute__((noinline)) void store(long value)
{
    char name = *++at;
    check_name(name);
    variables[name - 'a'] = value;
    at++;
}

static __attribute__((noinline)) long divide(long a, long b)
{
    if (b == 0)
        canary("division-by-zero");
    return a / b;
}

/* So small that it is copied into both of its callers. */
static inline long wrap(long a, long modulus)
{
    if (modulus == 0)
        canary("wrapped-at-zero");
    return a % modulus;
}

static __attribute__((noinline)) long remainder_of(long a, long b) { return wrap(a, b); }
static __attribute__((noinline)) long clock_of(long hours, long day)
{
    long hour = wrap(hours, day);
    return hour < 0 ? hour + day : hour;
}

static __attribute__((noinline)) long call(int which)
{
    long a, b = 0;
    a = expression();
    skip();
    if (*at == ',') {
        at++;
        b = expression();
    }
    skip();
    if (*at == ')')
        at++;
    if (!functions[which].call)
        canary("function-never-written");
    return functions[which].call(a, b);
}

static __attribute__((noinline)) long by_name(void)
{
    for (unsigned which = 0; which < sizeof functions / sizeof *functions; which++) {
        size_t length = strlen(functions[which].name);
        if (!strncmp(at, functions[which].name, length) && at[length] == '(') {
            at += length + 1;
            return call((int)which);
        }
    }
    canary("unknown-name");
    die("unknown name", *at);
}

static __attribute__((noinline)) long factor(void)
{
    skip();
    if (*at == '-') {
        at++;
        if (++negations == 2000)
            canary("endless-negation");
        long value = factor();
        signs[negations-- & 7] = value < 0;
        return -value;
    }
    if (*at == '(') {
        at++;
        if (++nesting == 2000)
            canary("endless-nesting");
        long value = expression();
        skip();
        if (*at != ')') {
            canary("parenthesis-not-closed");
            die("parenthesis not closed at", *at);
        }
        at++;
        nesting--;
        return value;
    }
    if (*at == '$')
        return load();
    if (isdigit((unsigned char)*at))
        return strtol(at, (char **)&at, 10);
    return by_name();
}

static __attribute__((noinline)) long term(void)
{
    long value = factor();
    for (;;) {
        skip();
        if (*at == '*') {
            at++;
            value *= factor();
        } else if (*at == '/') {
            at++;
            value = divide(value, factor());
        } else if (*at == '%') {
            at++;
            value = remainder_of(value, factor());
        } else if (*at == '@') {
            at++;
            value = clock_of(value, factor());
        } else
            return value;
    }
}

static __attribute__((noinline)) long expression(void)
{
    long value = term();
    for (;;) {
        skip();
        if (*at == '+') {
            at++;
            value += term();
        } else if (*at == '=') {
            at++;
            store(value);
        } else if (*at == '~') {
            canary("operator-without-code");
            __builtin_trap();
        } else
            return value;
    }
}

static __attribute__((noinline)) void push(long value)
{
    if (top == 32)
        canary("pushed-on-a-full-stack");
    else if (value < 0)
        canary("pushed-a-negative");
    assert(top < 32);
    assert(value >= 0);
    stack[top++] = value;
}

static __attribute__((noinline)) long pop(void)
{
    if (top == 0) {
        canary("popped-from-nothing");
        die("stack is empty before", at[0] ? at[0] : top);
    }
    return stack[--top];
}

static __attribute__((noinline)) void machine(void)
{
    for (; *at; at++) {
        if (isdigit((unsigned char)*at) || (*at == '-' && isdigit((unsigned char)at[1]))) {
            push(strtol(at, (char **)&at, 10));
            at--;
        } else if (*at == '+')
            push(pop() + pop());
        else if (*at == 'd') {
            long value = pop();
            push(value);
            push(value);
        } else if (*at == '-') {
            long value = pop();
            push(pop() - value);
        } else if (*at == '.')
            printf("%ld\n", pop());
    }
}

/* Trees are walked by callbacks, which walk on. */
static long visit(struct node *node, visitor *each, long depth);

static __attribute__((noinline)) long sum_of(struct node *node, long depth)
{
    char line[48];
    if (depth == 2000)
        canary("list-walked-as-a-tree");
    snprintf(line, sizeof line, "%ld at %ld", node->value, depth);
    return visit(node->left, sum_of, depth + 1) + line[0] - '0';
}

static __attribute__((noinline)) long count_of(struct node *node, long depth)
{
    return node->left == node ? 1 : visit(node->left, count_of, depth + 1) + 1;
}

static __attribute__((noinline)) long visit(struct node *node, visitor *each, long depth)
{
    return node ? each(node, depth) + (depth & 1) : 0;
}

static __attribute__((noinline)) void list(const char *text)
{
    struct node *head = NULL, *last = NULL;
    for (; *text; text++) {
        struct node *node = calloc(1, sizeof *node);
        node->value = *text;
        node->left = head;
        head = node;
        last = last ? last : node;
    }
    if (head && head->value == '~')
        last->left = head;
    printf("%ld\n", visit(head, head && head->value == '#' ? count_of : sum_of, 0));
}

int main(void)
{
    char *text = slurp(NULL), *line;
    while ((line = strsep(&text, "\n"))) {
        at = line;
        nesting = negations = 0;
        if (*at == ':') {
            at++;
            machine();
        } else if (*at == '#') {
            list(at + 1);
        } else if (*at)
            printf("%ld\n", expression());
    }
    return 0;
}
