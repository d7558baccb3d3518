/* Looks for words in its input, in every way that compilers have for it. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *const keywords[] = {"pastry", "butterfly", "sundial"};

__attribute__((noinline)) static uint64_t number(const char *at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

__attribute__((noinline)) static int by_case(uint32_t kind)
{
    switch (kind) {
    case 0x49484452: return 1;
    case 0x504c5445: return 2;
    case 0x74455874: return 3;
    case 0x69434350: return 4;
    case 0x7a545874: return 5;
    default: return 0;
    }
}

int main(void)
{
    char text[4096];
    size_t size = fread(text, 1, sizeof text - 1, stdin);
    text[size] = 0;
    if (size < 16)
        return fprintf(stderr, "the input of %zu bytes is too short for this program\n", size) < 0;
    int found = 0;
    if ((uint32_t)number(text, 4) == 0xcafebabe)
        found += 1;
    if ((uint16_t)number(text + 4, 2) == 0x4d42)
        found += 2;
    if (number(text, 8) == 0x1a0a0d0a474e5089)
        found += 4;
    if ((uint32_t)number(text, 4) == 12 || number(text, 8) > 4096)
        found += 8;
    if (strcmp(text, "%%EndOfFile") == 0 || strstr(text, "Content-Length") != NULL)
        found += 16;
    for (int i = 0; i < 3; i++)
        if (strncmp(text, keywords[i], strlen(keywords[i])) == 0)
            found += 32;
    found += by_case((uint32_t)number(text + 8, 4));
    puts(found > 0 ? "/usr/share/found" : "cannot find: nothing there");
    return 0;
}
