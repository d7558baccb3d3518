/* Recursions: "c" through a cycle of parents, "n" past a number at which it should end, "d" as deep as the input is
   nested, "p" by a parser that does not go on, "b" a stack that is full without one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct site {
    char name[8];
    struct site *parent;
};

struct parser {
    const char *text;
    int at;
    int lists;
};

static struct site sites[3] = {{"site", NULL}, {"www", NULL}, {"base", NULL}};
static char input[1 << 18];

static void place_under(struct site *site, struct site *parent)
{
    site->parent = parent;
}

static const char *root_of(struct site *site)
{
    const char *root = site->name;
    if (site->parent)
        root = root_of(site->parent);
    return root;
}

static int steps_of(int left, int step)
{
    int rest = left;
    if (rest != 0)
        rest = 1 + steps_of(left - step, step);
    return rest;
}

static int depth_of(struct parser *parser)
{
    int depth = 0;
    if (parser->text[parser->at] == '(') {
        parser->at++;
        depth = 1 + depth_of(parser);
    }
    return depth;
}

static void items(struct parser *parser)
{
    char next = parser->text[parser->at];
    if (next == 0)
        return;
    if (next == '(')
        parser->lists++;
    if (next != '?')
        parser->at++;
    items(parser);
}

static int big(int is_bad)
{
    char room[is_bad ? 64 << 20 : 64];
    memset(room, 1, sizeof room);
    return room[is_bad];
}

int main(void)
{
    input[fread(input, 1, sizeof input - 1, stdin)] = 0;
    int number = atoi(input + 1);
    struct parser parser = {input + 1, 0, 0};
    switch (input[0]) {
    case 'c':
        place_under(&sites[0], &sites[1]);
        place_under(&sites[1], &sites[2]);
        if (number > 4)
            place_under(&sites[2], &sites[0]);
        printf("%s\n", root_of(&sites[1]));
        break;
    case 'n':
        printf("%d\n", steps_of(number, 3));
        break;
    case 'd':
        printf("%d\n", depth_of(&parser));
        break;
    case 'p':
        items(&parser);
        printf("%d\n", parser.lists);
        break;
    case 'b':
        printf("%d\n", big(number > 4));
        break;
    }
    return 0;
}
