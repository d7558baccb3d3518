/* Keeps names, rows and lists: one command a line. Few helpers do the work on the buffers of many,
 * so that where it happens says little: whose buffer it is tells the bugs apart. It is only run
 * with AddressSanitizer, which knows that. */
#include "ground.h"

#define APART static __attribute__((noinline))

static volatile long used;
static char *session, *cached;
static const int palette[16] = {1, 2, 3, 4}, weights[8] = {5, 6, 7};

static struct { int *items; int count, capacity; } list;

/* The helpers. Of these three what they do is right. */
APART void copy(char *to, const char *from)
{
    while ((*to = *from))
        to++, from++;
}

APART int at(const int *table, int index)
{
    return table[index];
}

APART long sum_of(const char *text)
{
    long sum = 0;
    while (*text)
        sum += *text++;
    return sum;
}

/* Fills one more than there are. */
APART void pad(char *to, int size, char with)
{
    for (int i = 0; i <= size; i++) {
        if (i == size)
            canary("pad-fills-one-more");
        to[i] = with;
    }
}

/* Does not stop at the begin. */
APART void chop(char *text)
{
    long last = (long)strlen(text) - 1;
    if (text[strspn(text, " ")] == 0)
        canary("chop-goes-before-the-begin");
    while (text[last] == ' ')
        last--;
    text[last + 1] = 0;
}

/* Those who use them. Four have a buffer of their own on the stack, and copy to it what is too
 * long. */
APART void set_name(const char *text)
{
    char name[32];
    if (strlen(text) >= sizeof name)
        canary("name-too-long");
    copy(name, text);
    used += sum_of(name);
}

static void set_path(const char *text)
{
    char path[48];
    if (strlen(text) >= sizeof path)
        canary("path-too-long");
    copy(path, text);
    used += sum_of(path);
}

APART void set_unit(const char *text)
{
    char unit[8];
    if (strlen(text) >= sizeof unit)
        canary("unit-too-long");
    copy(unit, text);
    used += sum_of(unit);
}

APART void scale(const char *text, int by)
{
    used *= by;
    set_unit(text);
    used++;
}

/* It has two of them. */
APART void set_titles(const char *first, const char *second)
{
    char title[24], subtitle[40];
    if (strlen(first) >= sizeof title)
        canary("title-too-long");
    copy(title, first);
    if (strlen(second) >= sizeof subtitle)
        canary("subtitle-too-long");
    copy(subtitle, second);
    used += sum_of(title) + sum_of(subtitle);
}

/* On the heap. */
APART char *new_key(void) { return malloc(16); }
APART char *new_value(void) { return malloc(16); }

APART void set_key(const char *text)
{
    char *key = new_key();
    if (strlen(text) >= 16)
        canary("key-too-long");
    copy(key, text);
    used += sum_of(key);
    free(key);
}

APART void set_value(const char *text)
{
    char *value = new_value();
    if (strlen(text) >= 16)
        canary("value-too-long");
    copy(value, text);
    used += sum_of(value);
    free(value);
}

/* Two in one function. */
APART void set_pair(const char *first, const char *second)
{
    char *left = malloc(12), *right = malloc(20);
    if (strlen(first) >= 12)
        canary("left-too-long");
    copy(left, first);
    if (strlen(second) >= 20)
        canary("right-too-long");
    copy(right, second);
    used += sum_of(left) + sum_of(right);
    free(left);
    free(right);
}

/* All memory of these is taken in one place. */
APART char *take(size_t size)
{
    char *taken = malloc(size);
    if (!taken)
        exit(2);
    return taken;
}

APART void comment(const char *text)
{
    char *kept = take(30);
    if (strlen(text) >= 30)
        canary("comment-too-long");
    copy(kept, text);
    used += sum_of(kept);
    free(kept);
}

APART void remark(const char *text)
{
    char *kept = take(10);
    if (strlen(text) >= 10)
        canary("remark-too-long");
    copy(kept, text);
    used += sum_of(kept);
    free(kept);
}

/* In tables. */
APART void color(int index)
{
    if (index < 0 || index >= 16)
        canary("color-not-in-palette");
    used += at(palette, index);
    used++;
}

APART void weigh(int index)
{
    if (index < 0 || index >= 8)
        canary("weight-not-in-table");
    used += at(weights, index);
    used--;
}

/* These rely on the helpers that are wrong. */
APART void row(char with)
{
    char cells[20];
    pad(cells, sizeof cells, with);
    used += cells[3];
}

APART void column(char with)
{
    char cells[12];
    pad(cells, sizeof cells, with);
    used -= cells[3];
}

APART void page(char with)
{
    char *cells = malloc(64);
    pad(cells, 64, with);
    used += cells[5];
    free(cells);
}

APART void chop_line(const char *text)
{
    char line[64];
    snprintf(line, sizeof line, "%s", text);
    chop(line);
    used += sum_of(line);
}

APART void chop_cell(const char *text)
{
    char cell[16];
    snprintf(cell, sizeof cell, "%s", text);
    chop(cell);
    used -= sum_of(cell);
}

APART void chop_copy(const char *text)
{
    char *whole = strdup(text);
    chop(whole);
    used += sum_of(whole);
    free(whole);
}

/* One mistake, met in what either of two has allocated. */
APART void create(void)
{
    list.items = malloc(4 * sizeof(int));
    list.capacity = 4;
    list.count = 0;
}

APART void reserve(int capacity)
{
    free(list.items);
    list.items = malloc((size_t)(capacity & 63) * sizeof(int));
    list.capacity = capacity & 63;
    list.count = 0;
}

APART void push(int item)
{
    if (list.count > list.capacity)
        return;
    if (list.count == list.capacity)
        canary("pushed-over-the-capacity");
    list.items[list.count++] = item;
}

/* A wild index may meet any block. */
APART void mark(long index)
{
    char *marks = calloc(1, 64), *others = calloc(1, 200);
    if (index < 0 || index >= 64)
        canary("mark-not-checked");
    marks[index] = 'x';
    used += marks[0] + others[0];
    free(marks);
    free(others);
}

/* What is gone is read by one helper. */
APART void login(const char *user) { session = strdup(user); }
APART void cache(const char *text)
{
    cached = malloc(100);
    snprintf(cached, 100, "%s", text);
}

APART void show_session(int gone)
{
    if (gone)
        canary("session-shown-after-logout");
    used += sum_of(session);
    used++;
}

APART void show_cached(int gone)
{
    if (gone)
        canary("cache-shown-after-drop");
    used += sum_of(cached);
    used--;
}

static int is(const char *word, const char *command) { return !strcmp(word, command); }

static void text_command(const char *word, char *rest)
{
    char *second = strchr(rest, '/');
    if (second)
        *second++ = 0;
    const char *behind = second ? second : "";
    if (is(word, "name"))
        set_name(rest);
    else if (is(word, "path"))
        set_path(rest);
    else if (is(word, "unit"))
        set_unit(rest);
    else if (is(word, "scale"))
        scale(rest, 3);
    else if (is(word, "titles"))
        set_titles(rest, behind);
    else if (is(word, "key"))
        set_key(rest);
    else if (is(word, "value"))
        set_value(rest);
    else if (is(word, "pair"))
        set_pair(rest, behind);
    else if (is(word, "comment"))
        comment(rest);
    else if (is(word, "remark"))
        remark(rest);
    else if (is(word, "line"))
        chop_line(rest);
    else if (is(word, "cell"))
        chop_cell(rest);
    else if (is(word, "copy"))
        chop_copy(rest);
}

static void command(const char *word, char *rest)
{
    static int logged_out, dropped;
    int number = atoi(rest);
    if (is(word, "color"))
        color(number);
    else if (is(word, "weight"))
        weigh(number);
    else if (is(word, "row"))
        row(*rest);
    else if (is(word, "column"))
        column(*rest);
    else if (is(word, "page"))
        page(*rest);
    else if (is(word, "create"))
        create();
    else if (is(word, "reserve"))
        reserve(number);
    else if (is(word, "push") && list.items)
        push(number);
    else if (is(word, "mark"))
        mark(number);
    else if (is(word, "login"))
        login(rest);
    else if (is(word, "cache"))
        cache(rest);
    else if (is(word, "logout")) {
        free(session);
        logged_out = 1;
    } else if (is(word, "drop")) {
        free(cached);
        dropped = 1;
    } else if (is(word, "session") && session)
        show_session(logged_out);
    else if (is(word, "cached") && cached)
        show_cached(dropped);
    else
        text_command(word, rest);
}

int main(void)
{
    char *text = slurp(NULL), *line;
    while ((line = strsep(&text, "\n"))) {
        char *rest = line;
        char *word = strsep(&rest, " ");
        command(word, rest ? rest : (char[]){0});
    }
    return 0;
}
