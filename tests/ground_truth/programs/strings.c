/* A text formatter with variables: one directive a line. Compiled with -fstack-protector-all. */
#define _GNU_SOURCE
#include "ground.h"

struct variable { char name[16]; char *value; };
static struct variable variables[16];
static int used;
static char *output;

static char *variable(const char *name)
{
    for (int i = 0; i < used; i++)
        if (!strcmp(variables[i].name, name))
            return variables[i].value;
    return NULL;
}

static void set(const char *name, const char *value)
{
    if (used == 16)
        return;
    snprintf(variables[used].name, sizeof variables[used].name, "%s", name);
    variables[used++].value = strdup(value);
}

/* Sound, as strlen is. */
static __attribute__((noinline)) size_t columns(const char *text, int tab)
{
    size_t length = strlen(text);
    for (const char *at = text; *at; at++)
        length += *at == '\t' ? (size_t)tab - 1 : 0;
    return length;
}

static __attribute__((noinline)) void center(char *name)
{
    char *value = variable(name);
    if (!value)
        canary("center-of-unset");
    size_t width = columns(value, 8);
    printf("%*s%s\n", (int)(width < 72 ? (72 - width) / 2 : 0), "", value);
}

static __attribute__((noinline)) void underline(char *name, char *with)
{
    char *value = variable(name);
    if (!value)
        canary("underline-of-unset");
    for (size_t left = columns(value, 4); left; left--)
        putchar(*with ? *with : '-');
}

static __attribute__((noinline)) void append(const char *text, size_t at)
{
    if (!output)
        canary("output-not-open");
    strcpy(output + at, text);
}

static __attribute__((noinline)) void write_page(char *text) { append(text, 0); }
static __attribute__((noinline)) void write_foot(char *text) { append(text, strlen(text)); }

static __attribute__((noinline)) void slice(char *text, long from, long to)
{
    char *part = malloc(256);
    if (to < from)
        canary("slice-ends-before-it-begins");
    if (to < 200 && from >= 0)
        memcpy(part, text + from, (size_t)(to - from));
    printf("%.9s\n", part);
    free(part);
}

static __attribute__((noinline)) void include(unsigned long handle, int twice)
{
    char page[128];
    canary("include-by-number");
    int length = snprintf(page, sizeof page, twice ? "%s%s" : "%.40s", (char *)handle, (char *)handle);
    fwrite(page, 1, length > 0 ? (size_t)length & 63 : 0, stdout);
}

static __attribute__((noinline)) void take(char *to, const char *from)
{
    while (*from && *from != '|')
        *to++ = *from++;
    *to = 0;
}

static __attribute__((noinline)) void title(char *text)
{
    char buffer[48];
    if (strlen(text) >= sizeof buffer)
        canary("long-title");
    take(buffer, text);
    puts(buffer);
}

static __attribute__((noinline)) void heading(char *text, int level)
{
    printf("%d ", level);
    title(text);
}

__attribute__((noinline, no_stack_protector)) static void caption(char *text)
{
    char buffer[40];
    if (strlen(text) >= sizeof buffer)
        canary("long-caption");
    take(buffer, text);
    puts(buffer);
}

__attribute__((no_stack_protector, noinline)) static void figure(char *text)
{
    caption(text);
    puts("---");
}

static __attribute__((noinline)) void footnote(const char *text)
{
    char buffer[24];
    if (strlen(text) >= sizeof buffer)
        canary("long-footnote");
    strcpy(buffer, text);
    puts(buffer);
}

static __attribute__((noinline)) void margin(const char *text) { footnote(text + 1); putchar('\n'); }

static int by_length(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    if (!left || !right)
        canary("sorting-an-empty-word");
    return left[0] - right[0];
}

static int by_name(const void *key, const void *member)
{
    const char *const *word = member;
    if (!*word)
        canary("searching-an-empty-word");
    return ((const char *)key)[0] - (*word)[0];
}

static int split(char *text, char **words, int most)
{
    int count = 0;
    for (char *word; (word = strsep(&text, ",")) && count < most;)
        words[count++] = *word ? word : NULL;
    return count;
}

static __attribute__((noinline)) void sort(char *text)
{
    char *words[16];
    int count = split(text, words, 16);
    qsort(words, (size_t)count, sizeof *words, by_length);
    printf("%d\n", count);
}

static __attribute__((noinline)) void unique(char *text, char *more)
{
    char *words[16];
    int count = split(text, words, 8);
    count += split(more, words + count, 8);
    qsort(words, (size_t)count, sizeof *words, by_length);
    for (int i = 1; i < count; i++)
        puts(words[i]);
}

static __attribute__((noinline)) void search(char *text, char *key)
{
    char *words[16];
    int count = split(text, words, 16);
    puts(bsearch(key, words, (size_t)count, sizeof *words, by_name) ? "yes" : "no");
}

static void directive(char *word, char *rest)
{
    char a[24] = "", b[600] = "";
    long from = 0, to = 0;
    sscanf(rest, "%23s %599s", a, b);
    if (!strcmp(word, "set"))
        set(a, b);
    else if (!strcmp(word, "center"))
        center(a);
    else if (!strcmp(word, "under"))
        underline(a, b);
    else if (!strcmp(word, "open"))
        output = calloc(1, 4096);
    else if (!strcmp(word, "page"))
        write_page(rest);
    else if (!strcmp(word, "foot"))
        write_foot(rest);
    else if (!strcmp(word, "slice") && sscanf(rest, "%ld %ld", &from, &to) == 2)
        slice(rest, from, to);
    else if (!strcmp(word, "include"))
        include(strtoul(a, NULL, 16), *b == '2');
    else if (!strcmp(word, "title"))
        title(rest);
    else if (!strcmp(word, "heading"))
        heading(rest, (int)strlen(a));
    else if (!strcmp(word, "caption"))
        caption(rest);
    else if (!strcmp(word, "figure"))
        figure(rest);
    else if (!strcmp(word, "note"))
        footnote(rest);
    else if (!strcmp(word, "margin"))
        margin(rest);
    else if (!strcmp(word, "sort"))
        sort(a);
    else if (!strcmp(word, "uniq"))
        unique(a, b);
    else if (!strcmp(word, "find"))
        search(a, b);
}

int main(void)
{
    char *text = slurp(NULL), *line;
    while ((line = strsep(&text, "\n"))) {
        char *rest = line;
        char *word = strsep(&rest, " ");
        directive(word, rest ? rest : "");
    }
    return 0;
}
