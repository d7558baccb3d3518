/* A target whose third call in one process crashes: alone no input does. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int calls;

int target_main(const uint8_t *data, size_t length) {
    (void)data, (void)length;
    if (++calls == 3)
        abort();
    return 0;
}

int main(void) {
    static uint8_t input[1 << 20];
    return target_main(input, fread(input, 1, sizeof input, stdin));
}
