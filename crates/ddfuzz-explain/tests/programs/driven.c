/* A function fails that libFuzzer calls. */
#include <stdio.h>
#include <stdlib.h>

static int table[4] = {1, 2, 3, 4};

static int one(const unsigned char *data, size_t size)
{
    if (size < 2)
        return 0;
    int index = data[0] - '0';
    int *at = index < 4 ? &table[index] : NULL;
    return *at;
}

#line 1 "/home/me/.cargo/registry/src/index/libfuzzer-sys-0.4.0/libfuzzer/FuzzerMain.cpp"
static int kinds[2];

int main(void)
{
    static unsigned char data[64];
    size_t size = fread(data, 1, sizeof data, stdin);
    int kind = data[0] < '4';
    if (kind)
        kinds[kind] += 1;
    else
        kinds[kind] += 2;
    return one(data, size) < 0;
}
