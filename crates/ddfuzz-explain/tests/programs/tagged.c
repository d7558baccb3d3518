/* Entries with a tag, of which the seventh one is written behind the end of its block: its tag looks
   like the size of a free block, and its value is the length of the text behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    unsigned long tag;
    unsigned long value;
    char *text;
};
struct text {
    unsigned long size;
    char bytes[8];
};

static struct entry *entries;
static struct text *label;

static struct entry *entry_at(int index) {
    return &entries[index];
}

static void set(int index, unsigned long value) {
    struct entry *entry = entry_at(index);
    entry->tag = 0xd0;
    entry->value = value;
}

static void show(void) {
    char *copy = malloc(64);
    memcpy(copy, label->bytes, label->size);
    printf("%.4s\n", copy);
    free(copy);
}

int main(void) {
    int index;
    entries = calloc(7, sizeof *entries);
    label = malloc(sizeof *label);
    label->size = 5;
    strcpy(label->bytes, "name");
    while (scanf("%d", &index) == 1)
        set(index, 0x40000000);
    show();
    return 0;
}
