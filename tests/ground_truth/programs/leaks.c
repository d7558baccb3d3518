/* Loses memory: found by LeakSanitizer alone. */
#define _GNU_SOURCE
#include "ground.h"

static char *volatile last;

static __attribute__((noinline)) void forget_name(const char *name)
{
    canary("name-forgotten");
    last = strdup(name);
    last = NULL;
}

static __attribute__((noinline)) void forget_list(int length)
{
    canary("list-forgotten");
    for (int i = 0; i < length; i++) {
        last = malloc(24);
        memset(last, i, 24);
    }
    last = NULL;
}

static __attribute__((noinline)) void list_of(const char *text) { forget_list((int)strlen(text)); puts(text); }

int main(void)
{
    char *all = slurp(NULL), *text = all, *line;
    while ((line = strsep(&text, "\n"))) {
        if (*line == 'n')
            forget_name(line);
        else if (*line == 'l')
            forget_list(line[1] & 7);
        else if (*line == 't')
            list_of(line);
    }
    free(all);
    return 0;
}
