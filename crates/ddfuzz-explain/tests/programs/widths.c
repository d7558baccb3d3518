/* Offsets in one or two bytes: the larger end of the range of one byte is that of a byte without a
   sign, which the compiler folds into another constant. */
#include <stdio.h>

static int width(int offset) {
    int bytes = 2;
    if (offset >= -0x80 && offset <= 0xff)
        bytes = 1;
    return bytes;
}

int main(void) {
    int offset, all = 0;
    while (scanf("%d", &offset) == 1) {
        int bytes = width(offset);
        if (bytes == 1)
            printf("short %d\n", offset);
        else
            printf("long %d\n", offset);
        all += bytes;
    }
    printf("%d bytes\n", all);
    return 0;
}
