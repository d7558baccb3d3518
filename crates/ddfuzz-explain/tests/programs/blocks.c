/* Three faults of heap blocks, whose statement is neither the one that fails nor the one that allocates. The
   first letter of the input selects one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct picture {
    int width, height;
    unsigned char *pixels;
};
struct text {
    int length, total;
    char *bytes;
};
struct pair {
    char *first, *second;
};

/* The number of bytes has sixteen bits. */
static void setup(struct picture *it, int width, int height)
{
    uint16_t bytes;
    it->width = width;
    it->height = height;
    bytes = it->width * it->height;
    it->pixels = calloc(1, bytes);
}

static void paint(struct picture *it, int x, int y)
{
    it->pixels[(size_t)y * it->width + x] = 7;
}

/* The length of the copy is that of the original with its head. */
static struct text *duplicate(const struct text *of)
{
    struct text *it = malloc(sizeof *it);
    it->length = of->total;
    it->total = of->total;
    it->bytes = malloc(of->length);
    memcpy(it->bytes, of->bytes, of->length);
    return it;
}

static void mask(struct text *it)
{
    for (int i = 0; i < it->length; i++)
        it->bytes[i] = 'x';
}

static void texts(int length, int head)
{
    struct text one = {length, length + head, NULL};
    one.bytes = calloc(1, length);
    struct text *copy = duplicate(&one);
    char *behind = malloc(40);
    mask(copy);
    puts("masked");
    free(behind);
    free(copy->bytes);
    free(one.bytes);
    free(copy);
}

/* Both of a pair have the same block then. */
static void share(struct pair *it)
{
    it->second = it->first;
}

static void pairs(int shared, int size)
{
    struct pair it = {malloc(size), malloc(size)};
    strcpy(it.first, "a");
    strcpy(it.second, "b");
    if (shared)
        share(&it);
    printf("%s %s\n", it.first, it.second);
    free(it.first);
    free(it.second);
}

int main(void)
{
    char what;
    int one, other;
    struct picture picture;
    if (scanf("%c %d %d", &what, &one, &other) != 3)
        return 1;
    switch (what) {
    case 'p':
        setup(&picture, one, other);
        paint(&picture, one - 1, other - 1);
        break;
    case 'l':
        texts(one, other);
        break;
    case 't':
        pairs(one, other);
        break;
    }
    puts("done");
    return 0;
}
