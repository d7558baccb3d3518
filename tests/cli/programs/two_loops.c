/* Two loops: an input may run into either. */
#include <stdio.h>
#include <string.h>
#define FAR __attribute__((noinline, noclone))
static volatile unsigned long sink;
static volatile int yes = 1;
FAR static void tick(void) { sink++; }
FAR static void first(void) { while (yes) tick(); }
FAR static void second(void) { while (yes) { tick(); sink += 2; } }
int main(void)
{
    char text[100] = "";
    fread(text, 1, 99, stdin);
    if (strchr(text, 'x')) first();
    if (strchr(text, 'y')) second();
    return 0;
}
