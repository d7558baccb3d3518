/* Counts words by a hash table. The bug: the index of a bucket is computed from signed characters, and may
   be negative. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 64

struct entry {
    char *word;
    int count;
    struct entry *next;
};

struct table {
    int words;
    int longest;
    struct entry *buckets[BUCKETS];
};

static int hash(const char *word)
{
    int value = 0;
    for (const char *at = word; *at; at++)
        value = value * 3 + *at;
    return value % BUCKETS;
}

static struct entry *find(struct table *table, const char *word, int create)
{
    int index = hash(word);
    struct entry *entry;

    for (entry = table->buckets[index]; entry; entry = entry->next)
        if (strcmp(entry->word, word) == 0)
            return entry;
    if (!create)
        return NULL;
    entry = malloc(sizeof *entry);
    entry->word = strdup(word);
    entry->count = 0;
    entry->next = table->buckets[index];
    table->buckets[index] = entry;
    table->words++;
    return entry;
}

static void count_line(struct table *table, char *line)
{
    char *word = strtok(line, " \n\t");
    while (word) {
        int length = strlen(word);
        if (length > table->longest)
            table->longest = length;
        find(table, word, 1)->count++;
        word = strtok(NULL, " \n\t");
    }
}

static int report(struct table *table)
{
    int total = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry *entry = table->buckets[i]; entry; entry = entry->next) {
            printf("%-*s %d\n", table->longest, entry->word, entry->count);
            total += entry->count;
        }
    return total;
}

int main(void)
{
    struct table *table = calloc(1, sizeof *table);
    char line[512] = "";
    while (fgets(line, sizeof line, stdin))
        count_line(table, line);
    printf("%d words, %d different\n", report(table), table->words);
    return 0;
}
