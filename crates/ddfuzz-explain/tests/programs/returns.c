/* Writes over return addresses. Each line is a command, a space and a text:
   c: the text is copied, without a backslash, into an array of 16 bytes;
   d: as many folders within each other are entered as the text has characters. */
#include <stdio.h>
#include <string.h>

struct state {
    int folders;
    int lines;
};

static int copied(char *to, const char *from)
{
    char *start = to;

    for (; *from; from++) {
        if (*from == '\\')
            from++;
        *to++ = *from;
    }
    *to = 0;
    return to - start;
}

static int put(struct state *s, const char *text)
{
    char out[16];
    int size = copied(out, text);

    s->lines++;
    return size;
}

static void entered(struct state *s, const char *text, int depth)
{
    char indent[12];

    memset(indent, ' ', sizeof indent);
    indent[depth * 2] = 0;
    s->folders++;
    if (text[depth])
        entered(s, text, depth + 1);
    s->lines++;
}

/* Copies a word of at most `most` - 1 characters. */
static void word(char *to, const char *from, unsigned most)
{
    unsigned at = 0;

    while (*from && *from != ' ') {
        if (at + 1 < most)
            to[at++] = *from;
        from++;
    }
    to[at] = 0;
}

static int named(struct state *s, const char *text)
{
    struct {
        char code[4];
        struct state *of;
        char name[16];
    } it = {"", s, ""};

    word(it.name, text, sizeof it.name);
    word(it.code, text, sizeof it.name);
    it.of->lines++;
    return it.code[0];
}

/* Two numbers: further ones are written behind their array, by two statements. */
static int range(struct state *s, const char *text)
{
    int value[2] = {0, 0};
    int count = 0;

    for (; *text; text++) {
        if (*text == ',')
            value[++count] = 0;
        else
            value[count] = 10 * value[count] + *text - '0';
    }
    s->lines += value[0] + value[1];
    return count;
}

int main(void)
{
    struct state s = {0, 0};
    char line[128];

    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == 'c')
            put(&s, line + 2);
        else if (line[0] == 'd')
            entered(&s, line + 2, 0);
        else if (line[0] == 'n')
            named(&s, line + 2);
        else if (line[0] == 'r')
            range(&s, line + 2);
    }
    printf("%d %d\n", s.folders, s.lines);
    return 0;
}
