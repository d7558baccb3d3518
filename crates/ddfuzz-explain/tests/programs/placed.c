/* Words that are set into a row, each at the place after its name. */
#include <stdio.h>
#include <string.h>

static char row[16];
static char words[8][16];
static int starts[8];
static int count;
static int *table[3];
static int values[3] = {1, 2, 3};

static void set_all(void) {
    int at, index, word;
    for (word = 0; word < count; word++) {
        at = starts[word];
        for (index = 0; words[word][index]; index++) {
            row[at] = words[word][index];
            *table[at / 6] = at;
            at++;
        }
    }
}

int main(void) {
    char line[32];
    int index;
    for (index = 0; index < 3; index++)
        table[index] = &values[index];
    while (count < 8 && fgets(line, sizeof line, stdin))
        if (sscanf(line, "%d %15s", &starts[count], words[count]) == 2)
            count++;
    table[2] = NULL;
    set_all();
    puts(row);
    return 0;
}
