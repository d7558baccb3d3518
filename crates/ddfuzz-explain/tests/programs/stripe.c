/* The program of the STRIPE paper (AADEBUG 2000), in C: sum and product of the numbers from a to b. */
#include <stdio.h>

int a, b, sum, mul;

int main(void)
{
    a = 0;
    b = 5;
    sum = 0;
    mul = 1;
    while (a <= b) {
        sum = sum + a;
        mul = mul * a;
        a = a + 1;
    }
    printf("sum = %d\n", sum);
    printf("mul = %d\n", mul);
    return 0;
}
