/* Prints records, one a line; `!` behind a name says that it is urgent. The bug: a record after an
   urgent one is urgent as well. */
#include <stdio.h>
#include <string.h>

struct record {
    char name[16];
    int number;
    int urgent;
};

static void parse(struct record *record, const char *line)
{
    size_t length = strcspn(line, "!\n");
    if (length > 15)
        length = 15;
    memcpy(record->name, line, length);
    record->name[length] = 0;
    record->number++;
    if (line[length] == '!')
        record->urgent = 1;
}

static void show(const struct record *record)
{
    printf("%d %s", record->number, record->name);
    if (record->urgent)
        printf(" now");
    printf("\n");
}

int main(int argc, char **argv)
{
    struct record record = {"", 0, 0};
    char line[64];
    FILE *file = fopen(argv[argc - 1], "r");
    if (!file)
        return 1;
    while (fgets(line, sizeof line, file)) {
        parse(&record, line);
        show(&record);
    }
    return 0;
}
