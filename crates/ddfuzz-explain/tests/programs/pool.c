/* Keeps its words in memory that it maps itself. The bug: in a word with a hyphen, the letter behind it is
   stored as a digit, and looked up much later. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct word {
    char *text;
    struct word *next;
};

static char *pool;
static struct word *words;
static const int vowels[26] = {[0] = 1, [4] = 1, [8] = 1, [14] = 1, [20] = 1};
static const int *tables[2] = {vowels, NULL};

static void *take(unsigned long size)
{
    char *room = pool;
    pool += (size + 15) & ~15UL;
    return room;
}

static void store(const char *text)
{
    struct word *word = take(sizeof *word);
    word->text = take(strlen(text) + 1);
    for (int i = 0; text[i]; i++) {
        char c = text[i];
        if (i > 0 && text[i - 1] == '-')
            c = '0';
        word->text[i] = c;
    }
    word->next = words;
    words = word;
}

static int count(const struct word *word)
{
    int found = 0;
    for (int i = 0; word->text[i]; i++) {
        char c = word->text[i];
        found += tables[c >= '0' && c <= '9'][(c | 32) % 26];
    }
    return found;
}

int main(void)
{
    char line[64];
    int all = 0;

    pool = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        store(line);
    }
    memset(line, 0, sizeof line);
    for (const struct word *word = words; word; word = word->next)
        all += count(word);
    printf("%d\n", all);
    return 0;
}
