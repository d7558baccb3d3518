/* A text that is longer than its buffer overwrites the register that the function has saved for its
   caller, who crashes by it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    int size, count;
};

__attribute__((noinline)) static int labelled(const char *text) {
    char buffer[16];
    int size = strlen(text);
    sprintf(buffer, "%s", text);
    return size + buffer[0];
}

__attribute__((noinline)) static int done(struct job *job, const char *text) {
    int size = labelled(text);
    job->size += size;
    job->count++;
    return size;
}

int main(void) {
    char line[64];
    struct job *job = calloc(1, sizeof *job);
    while (scanf("%30s", line) == 1)
        done(job, line);
    printf("%d %d\n", job->size, job->count);
    return 0;
}
