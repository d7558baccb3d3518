/* Exits with the first byte of its stdin, without any library. */
#include <sys/syscall.h>

static long call(long number, long a, long b, long c)
{
#ifdef __x86_64__
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#endif
}

void _start(void)
{
    unsigned char byte = 0;
    call(SYS_read, 0, (long)&byte, 1);
    call(SYS_exit_group, byte, 0, 0);
    __builtin_unreachable();
}
