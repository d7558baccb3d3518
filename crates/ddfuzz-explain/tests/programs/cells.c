// Prints cells "KIND TEXT", padded to the width of their kind. The width of "z" is set too small at the
// beginning of each run, also of those without such a cell.
#include <assert.h>
#include <stdio.h>
#include <string.h>

struct style {
    int width;
    char fill;
};

static struct style styles[3];

static void prepare(void)
{
    for (int i = 0; i < 3; i++) {
        styles[i].width = 6;
        styles[i].fill = ' ';
    }
    styles[1].width = 12;
    styles[2].width = 2;
    styles[2].fill = '0';
}

static int kind(char letter)
{
    switch (letter) {
    case 'w':
        return 1;
    case 'z':
        return 2;
    }
    return 0;
}

static void print(int number, const char *text)
{
    struct style *style = &styles[number];
    int left = style->width - (int)strlen(text);
    assert(left >= 0);
    while (left-- > 0)
        putchar(style->fill);
    printf("%s\n", text);
}

int main(void)
{
    char line[80];
    prepare();
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        print(kind(line[0]), line + 1);
    }
    return 0;
}
