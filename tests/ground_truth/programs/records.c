/* A small database of records with fields, driven by one command a line. */
#define _GNU_SOURCE
#include "ground.h"

struct field { char key[16]; long value; struct field *next; };
struct record { char name[16]; struct field *fields; int count; struct record *link; long hits; struct record *next; };
struct counter { long reads, writes; };

static struct record *records;
static struct counter *counters[4];
static volatile long slots[64];
static char window[256] = "the quick brown fox jumps over the lazy dog";

static struct record *find(const char *name)
{
    for (struct record *at = records; at; at = at->next)
        if (!strcmp(at->name, name))
            return at;
    return NULL;
}

static struct record *add(const char *name)
{
    struct record *new = calloc(1, sizeof *new);
    snprintf(new->name, sizeof new->name, "%s", name);
    new->next = records;
    return records = new;
}

/* One faulty function, reached by many callers: `record` may be missing. */
static __attribute__((noinline)) long value_of(struct record *record, const char *key)
{
    if (!record)
        canary("value-of-missing");
    for (struct field *at = record->fields; at; at = at->next)
        if (!strcmp(at->key, key))
            return at->value;
    return 0;
}

/* A sound list getter; its callers have to know how long the list is. */
static __attribute__((noinline)) long nth(struct field *list, int n)
{
    while (n-- > 0)
        list = list->next;
    return list->value;
}

static __attribute__((noinline)) void get(char *name, char *key)
{
    printf("%s.%s = %ld\n", name, key, value_of(find(name), key));
}

static __attribute__((noinline)) void copy(char *from, char *to, char *key)
{
    long value = value_of(find(from), key);
    struct record *target = find(to);
    if (target)
        target->hits += value;
}

static __attribute__((noinline)) long total(char *names, char *key)
{
    long sum = 0;
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ","))
        sum += value_of(find(name), key);
    return sum;
}

/* Forgets that a record may have no field. */
static __attribute__((noinline)) long first(struct record *record)
{
    if (record->count == 0)
        canary("first-of-empty");
    return nth(record->fields, 0) + 1;
}

/* Counts from one where nth counts from zero. */
static __attribute__((noinline)) long last(struct record *record)
{
    canary("last-is-off-by-one");
    return nth(record->fields, record->count) - 1;
}

static __attribute__((noinline)) void put_slot(long at, long value)
{
    if (at < 0)
        canary("negative-slot");
    if (at < 64)
        slots[at] = value;
}

static __attribute__((noinline)) long sum_window(long from, long length)
{
    long sum = 0;
    if (from + length > (long)sizeof window)
        canary("window-too-far");
    for (long at = from; at < from + length; at++)
        sum += window[at];
    return sum;
}

/* Believes that the number in the file is one that it gave out itself. */
static __attribute__((noinline)) void release(const char *handle)
{
    struct record *record = (struct record *)strtoull(handle, NULL, 16);
    canary("handle-from-file");
    record->hits--;
}

static __attribute__((noinline)) int depth(struct record *record, int below)
{
    char path[64];
    if (below == 2000)
        canary("linked-in-a-circle");
    if (!record->link)
        return below;
    snprintf(path, sizeof path, "%s/%d", record->name, below);
    return depth(record->link, below + 1) + (path[0] == '/');
}

/* A helper so small that compilers copy it into its callers. */
static inline void bump(struct counter *counter, int write)
{
    if (!counter)
        canary("counter-not-made");
    if (write)
        counter->writes++;
    else
        counter->reads++;
}

static __attribute__((noinline)) void count_get(int which, int n)
{
    while (n-- > 0)
        bump(counters[which & 3], 0);
}

static __attribute__((noinline)) void count_set(int which, int n)
{
    bump(counters[which & 3], 1);
    if (n > 1)
        printf("%d more\n", n);
}

/* The last thing that a dispatcher does is the call that fails. */
static __attribute__((noinline)) long touch(struct record *record, long by)
{
    if (!record)
        canary("touched-without-record");
    record->hits += by;
    return record->hits;
}

static __attribute__((noinline)) long retouch(char *name, long by) { return touch(find(name), by * 2); }
static __attribute__((noinline)) long touch_named(char *name) { return touch(find(name), 1); }

static __attribute__((noinline)) void link_to(struct record *from, struct record *to)
{
    if (from && to)
        from->link = to;
}

static void command(char *word, char *a, char *b, char *c)
{
    struct record *record = find(a);
    if (!strcmp(word, "new"))
        add(a);
    else if (!strcmp(word, "set") && record) {
        struct field *field = calloc(1, sizeof *field);
        snprintf(field->key, sizeof field->key, "%s", b);
        field->value = atol(c);
        field->next = record->fields;
        record->fields = field;
        record->count++;
    } else if (!strcmp(word, "get"))
        get(a, b);
    else if (!strcmp(word, "copy"))
        copy(a, b, c);
    else if (!strcmp(word, "total"))
        printf("%ld\n", total(a, b));
    else if (!strcmp(word, "first") && record)
        printf("%ld\n", first(record));
    else if (!strcmp(word, "last") && record)
        printf("%ld\n", last(record));
    else if (!strcmp(word, "slot"))
        put_slot(atol(a), atol(b));
    else if (!strcmp(word, "fill")) {
        for (long at = atol(b); at >= atol(a); at--)
            put_slot(at, at);
    } else if (!strcmp(word, "window"))
        printf("%ld\n", sum_window(atol(a), atol(b)));
    else if (!strcmp(word, "release"))
        release(a);
    else if (!strcmp(word, "link"))
        link_to(record, find(b));
    else if (!strcmp(word, "depth") && record)
        printf("%d\n", depth(record, 0));
    else if (!strcmp(word, "reads"))
        count_get(atoi(a), atoi(b));
    else if (!strcmp(word, "writes"))
        count_set(atoi(a), atoi(b));
    else if (!strcmp(word, "touch"))
        printf("%ld\n", touch_named(a));
    else if (!strcmp(word, "retouch"))
        printf("%ld\n", retouch(a, atol(b)));
}

int main(void)
{
    char *text = slurp(NULL), *save, *line = strtok_r(text, "\n", &save);
    for (; line; line = strtok_r(NULL, "\n", &save)) {
        char word[16] = "", a[64] = "", b[64] = "", c[64] = "";
        sscanf(line, "%15s %63s %63s %63s", word, a, b, c);
        command(word, a, b, c);
    }
    return 0;
}
