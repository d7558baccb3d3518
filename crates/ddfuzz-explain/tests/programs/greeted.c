/* Greets the name in each line that is no comment. */
#include <stdio.h>
#include <string.h>

static int greeted;

static void greet(const char *name)
{
    char copy[16];
    int at = 0;
    while (*name && *name != ',')
        copy[at++] = *name++; /* too long */
    copy[at] = 0;
    greeted++;
    printf("hello %s\n", copy);
}

int main(void)
{
    char line[128];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] != '#')
            greet(line);
    }
    printf("%d\n", greeted);
    return 0;
}
