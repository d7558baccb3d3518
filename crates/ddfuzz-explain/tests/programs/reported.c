/* Accesses outside of objects, which AddressSanitizer reports; the first character of a line says of which kind.
   The number of characters behind it decides whether the access is a bad one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word { char *text; int length; };
struct job { int id; int done; struct job *next; };

static int costs[4] = { 1, 2, 4, 8 };
static int level;
static struct word word;
static struct job *first, *last_seen;

static void copy_word(const char *from, int length)
{
    int i;
    word.length = length;
    word.text = malloc(length + 1);
    for (i = 0; i < length; i++)
        word.text[i] = from[i];
    if (length > 6)
        i++; /* too far */
    word.text[i] = 0; /* heap */
}

static int hash_of(const char *line, int length)
{
    char name[8];
    int n = 0, hash = 0;
    while (n < length && line[n] != ' ') {
        name[n] = line[n]; /* stack */
        n++;
    }
    while (n > 0)
        hash = hash * 31 + name[--n];
    return hash;
}

static void raise_level(int by)
{
    level += by; /* not bounded */
}

static int cost(void)
{
    return costs[level]; /* global */
}

static void add_job(int id)
{
    struct job *job = calloc(1, sizeof *job);
    job->id = id;
    job->next = first;
    first = last_seen = job;
}

static void drop_job(int id)
{
    struct job *job = first;
    if (job && job->id == id) {
        first = job->next;
        free(job); /* it may be the last one seen */
    }
}

static int last_done(void)
{
    return last_seen->done; /* freed */
}

static void forget_word(int length)
{
    if (length > 3)
        free(word.text); /* too early */
    free(word.text); /* again */
    word.text = NULL;
}

int main(void)
{
    char line[64];
    int sum = 0;
    while (fgets(line, sizeof line, stdin)) {
        int length = strcspn(line, "\n") - 1;
        switch (line[0]) {
        case 'h':
            copy_word(line + 1, length);
            break;
        case 's':
            sum += hash_of(line + 1, length);
            break;
        case 'g':
            raise_level(length);
            sum += cost();
            break;
        case 'u':
            add_job(3);
            drop_job(length);
            sum += last_done();
            break;
        case 'd':
            word.text = strdup(line);
            forget_word(length);
            break;
        }
    }
    printf("%d\n", sum & 255);
    return 0;
}
