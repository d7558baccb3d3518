/* A function is called by a pointer in a record, which "x" and "y" overwrite by what is no function:
   by an address that no program has, and by one where nothing is. "s" copies a name behind its block. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct operation {
    int code;
    void (*run)(int);
};

static struct operation *current;

static void show(int number) {
    printf("%d\n", number);
}

static void make(void) {
    current = malloc(sizeof *current);
    current->code = 1;
    current->run = show;
}

static void damage(long address) {
    current->run = (void (*)(int))address;
}

static int kind(const char *text) {
    int number = 0;
    while (*text >= 'a' && *text <= 'z')
        number = number * 26 + *text++ - 'a';
    return number;
}

static void copy(char *name, const char *from) {
    strcpy(name, from);
}

int main(void) {
    char text[8] = "";
    fgets(text, sizeof text, stdin);
    make();
    if (text[0] == 'x')
        damage(0x4242424242424242);
    if (text[0] == 'y')
        damage(0x424242424242);
    current->run(3);
    char *name = malloc(16);
    if (kind(text) == 's' - 'a') {
        copy(name, "a name of far more characters than it may have");
        free(malloc(2000));
    }
    free(name);
    return 0;
}
