/* Escapes: the case of a line feed has no break, so that the compiler leaves nothing of it. */
#include <stdio.h>

static int value(int escape) {
    int value = 0;
    switch (escape) {
    case 'a':
        value = 7;
        break;
    case 'n':
        value = 10;
    case 'r':
        value = 13;
        break;
    case 't':
        value = 9;
        break;
    case 'v':
        value = 11;
        break;
    default:
        value = escape;
    }
    return value;
}

static int sum;

static void add(int escape) {
    sum = sum * 2 + value(escape) % 16;
}

int main(void) {
    int escape;
    while ((escape = getchar()) > 0)
        if (escape != '\n') {
            add(escape);
            printf("%d\n", value(escape));
        }
    printf("sum %d\n", sum);
    return 0;
}
