#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUM, OP, LPAR, RPAR, END };
struct token { enum kind kind; char op; long value; };
static struct token tokens[200];
static int count, at;

static void scan(const char *s)
{
    while (*s) {
        struct token t = { END, 0, 0 };
        if (isspace((unsigned char)*s)) { s++; continue; }
        if (isdigit((unsigned char)*s)) {
            t.kind = NUM;
            while (isdigit((unsigned char)*s))
                t.value = t.value * 10 + *s++ - '0';
        } else if (*s == '(') { t.kind = LPAR; s++; }
        else if (*s == ')') { t.kind = RPAR; s++; }
        else { t.kind = OP; t.op = *s++; }
        if (count < 199)
            tokens[count++] = t;
    }
    tokens[count].kind = END;
}

static int priority(char op)
{
    switch (op) {
    case '*':
    case '/':
        return 20;
    case '%':
        return 10;
    case '+':
    case '-':
        return 10;
    case '<':
        return 5;
    }
    return 0;
}

struct node { char op; long value; struct node *left, *right; };

static struct node *make(char op, long value, struct node *l, struct node *r)
{
    struct node *n = malloc(sizeof *n);
    n->op = op; n->value = value; n->left = l; n->right = r;
    return n;
}

static struct node *expr(int least);

static struct node *primary(void)
{
    struct token *t = &tokens[at];
    if (t->kind == NUM) { at++; return make(0, t->value, NULL, NULL); }
    if (t->kind == LPAR) {
        at++;
        struct node *n = expr(1);
        if (tokens[at].kind == RPAR) at++;
        return n;
    }
    return make(0, 0, NULL, NULL);
}

static struct node *expr(int least)
{
    struct node *left = primary();
    while (tokens[at].kind == OP && priority(tokens[at].op) >= least) {
        char op = tokens[at++].op;
        struct node *right = expr(priority(op) + 1);
        left = make(op, 0, left, right);
    }
    return left;
}

static long eval(struct node *n)
{
    if (n->op == 0) return n->value;
    long l = eval(n->left), r = eval(n->right);
    switch (n->op) {
    case '+': return l + r;
    case '-': return l - r;
    case '*': return l * r;
    case '/': return r ? l / r : 0;
    case '%': return r ? l % r : 0;
    case '<': return l < r;
    }
    return 0;
}

int main(void)
{
    char line[400];
    while (fgets(line, sizeof line, stdin)) {
        count = at = 0;
        scan(line);
        printf("%ld\n", eval(expr(1)));
    }
    return 0;
}
