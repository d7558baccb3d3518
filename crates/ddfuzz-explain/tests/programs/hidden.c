/* Most of its variables are not used, so that optimization leaves nothing of them. */
#include <stdio.h>

static int number = 1;

static __attribute__((noinline, const)) int of(int seed)
{
    return seed * 7 % 5;
}

static __attribute__((noinline)) int look_up(char kind)
{
    int one = of(kind), two = of(one), three = of(two), four = of(three);
    int five = of(four), six = of(five), seven = of(six), eight = of(seven);
    volatile int *place = kind == 'x' ? NULL : &number;
    return *place;
}

int main(void)
{
    printf("%d\n", look_up(getchar()));
    return 0;
}
