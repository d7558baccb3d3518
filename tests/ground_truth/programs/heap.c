/* Sessions, buffers and events on the heap: one command a line. */
#define _GNU_SOURCE
#include "ground.h"

struct event { void (*fire)(struct event *); long number; struct event *next; char text[40]; };
struct session { char *user; char *token; int open; };

static struct session session;
static char *buffers[8];
static struct event *pending, *chain;
static long fired;
static char *volatile noted;

static __attribute__((noinline)) void fire_plain(struct event *event) { fired += event->number; }
static __attribute__((noinline)) void fire_twice(struct event *event) { fired += 2 * event->number + 1; }

static void login(char *user)
{
    session.user = strdup(user);
    session.token = malloc(48);
    memset(session.token, 't', 48);
    session.open = 1;
}

/* Leaves the pointers as they are. */
static __attribute__((noinline)) void close_session(void)
{
    if (!session.open)
        canary("session-closed-twice");
    session.open = 0;
    free(session.token);
    free(session.user);
}

static __attribute__((noinline)) void logout(void) { close_session(); puts("bye"); }
static __attribute__((noinline)) void expire(int after)
{
    if (after > 2)
        close_session();
    printf("expired after %d\n", after);
}

static __attribute__((noinline)) char *skip_spaces(char *text)
{
    while (*text == ' ')
        text++;
    return text;
}

/* Frees what it made, but no longer knows where that begins. */
static __attribute__((noinline)) void trim(const char *text)
{
    char *copy = strdup(text), *at = skip_spaces(copy);
    if (at != copy)
        canary("freed-behind-spaces");
    puts(at);
    free(at);
}

static __attribute__((noinline)) void trim_all(char *text)
{
    for (char *part; (part = strsep(&text, ";"));)
        trim(part);
}

/* Short names need no heap; the end has forgotten. */
static __attribute__((noinline)) void greet(const char *name)
{
    char small[32], *text = small;
    if (strlen(name) > 20)
        text = malloc(strlen(name) + 12);
    else
        canary("freed-from-the-stack");
    sprintf(text, "hello %s", name);
    puts(text);
    free(text);
}

static __attribute__((noinline)) void allocate(int which, size_t size)
{
    buffers[which & 7] = malloc(size);
}

/* Believes the length in the command. */
static __attribute__((noinline)) void fill(int which, size_t length, char with)
{
    char *buffer = buffers[which & 7];
    if (length > 24)
        canary("filled-beyond-its-end");
    if (buffer)
        for (size_t at = 0; at < length; at++)
            buffer[at] = with;
}

static __attribute__((noinline)) void drop(int which)
{
    char *buffer = buffers[which & 7];
    buffers[which & 7] = NULL;
    free(buffer);
}

static __attribute__((noinline)) void log_line(const char *text)
{
    char *line = malloc(2000);
    snprintf(line, 2000, "log: %s", text);
    puts(line);
    free(line);
}

static __attribute__((noinline)) void grow(int which, size_t size)
{
    char *larger = realloc(buffers[which & 7], size);
    if (larger)
        buffers[which & 7] = larger;
}

static struct event *make_event(long number, int twice)
{
    struct event *event = calloc(1, sizeof *event);
    event->fire = twice ? fire_twice : fire_plain;
    event->number = number;
    return event;
}

/* Forgets to forget it. */
static __attribute__((noinline)) void cancel(void) { free(pending); }

static __attribute__((noinline)) void note(const char *text)
{
    char *copy = malloc(sizeof(struct event));
    strncpy(copy, text, sizeof(struct event));
    noted = copy;
}

static __attribute__((noinline)) void fire(int cancelled)
{
    if (cancelled)
        canary("fired-after-cancel");
    pending->fire(pending);
}

static __attribute__((noinline)) void fire_soon(int cancelled, int more)
{
    fired += more;
    fire(cancelled);
    fired += more;
}

static void push(long number)
{
    struct event *event = make_event(number, 0);
    event->next = chain;
    chain = event;
}

/* Frees the second of the chain and leaves the link to it. */
static __attribute__((noinline)) void prune(void)
{
    if (chain && chain->next)
        free(chain->next);
}

static __attribute__((noinline)) long walk(int pruned)
{
    long sum = 0;
    if (pruned)
        canary("walked-over-freed");
    for (struct event *at = chain; at; at = at->next)
        sum += at->number;
    return sum;
}

static __attribute__((noinline)) void report(int pruned)
{
    printf("sum %ld\n", walk(pruned));
}

static __attribute__((noinline)) void average(int pruned, int of)
{
    printf("average %ld\n", walk(pruned) / (of + 1));
}

/* Hands out the place behind the header, and grows it as if it were the block. */
static __attribute__((noinline)) void packet(const char *text)
{
    char *block = malloc(64), *body = block + 16;
    snprintf(body, 48, "%.40s", text);
    if (strlen(text) > 30) {
        canary("packet-grown-at-its-body");
        body = realloc(body, 256);
    }
    puts(body);
}

static void command(char *word, char *rest)
{
    static int cancelled, pruned;
    int which = 0;
    unsigned long size = 0;
    char with = 'x';
    sscanf(rest, "%d %lu %c", &which, &size, &with);
    if (!strcmp(word, "login"))
        login(rest);
    else if (!strcmp(word, "logout"))
        logout();
    else if (!strcmp(word, "expire"))
        expire(which);
    else if (!strcmp(word, "trim"))
        trim(rest);
    else if (!strcmp(word, "trims"))
        trim_all(rest);
    else if (!strcmp(word, "greet"))
        greet(rest);
    else if (!strcmp(word, "alloc"))
        allocate(which, size);
    else if (!strcmp(word, "fill"))
        fill(which, size, with);
    else if (!strcmp(word, "drop"))
        drop(which);
    else if (!strcmp(word, "log"))
        log_line(rest);
    else if (!strcmp(word, "grow"))
        grow(which, size);
    else if (!strcmp(word, "event"))
        pending = make_event(which, (int)size);
    else if (!strcmp(word, "cancel")) {
        cancel();
        cancelled = 1;
    } else if (!strcmp(word, "note"))
        note(rest);
    else if (!strcmp(word, "fire") && pending)
        fire(cancelled);
    else if (!strcmp(word, "soon") && pending)
        fire_soon(cancelled, which);
    else if (!strcmp(word, "push"))
        push(which);
    else if (!strcmp(word, "prune")) {
        prune();
        pruned = 1;
    } else if (!strcmp(word, "report"))
        report(pruned);
    else if (!strcmp(word, "average"))
        average(pruned, which);
    else if (!strcmp(word, "packet"))
        packet(rest);
}

int main(void)
{
    char *text = slurp(NULL), *line;
    while ((line = strsep(&text, "\n"))) {
        char *rest = line;
        char *word = strsep(&rest, " ");
        command(word, rest ? rest : "");
    }
    return 0;
}
