/* System calls of the C library that the filter would stop become jumps: a stopped call costs a
 * signal, some microseconds, and a jump a fraction of one.
 *
 * A site is `mov $NUMBER, %eax; syscall` in the text of the C library, or the end of its internal
 * open, `mov $AT_FDCWD, %edi; syscall`. When a site is first stopped in a runner, the five bytes of
 * its `mov` become a jump to a gate in this library, which calls the same handler and jumps back
 * behind the site. The site in the function write, which the filter lets pass, becomes a jump from
 * the start, as does the beginning of the function _exit, whose system call has another form.
 *
 * Invariants:
 *   - only one instruction is replaced, so no jump of the library leads into the middle of what is
 *     new. Whoever jumps to the `syscall` of a site finds it there, and the filter stops it
 *   - a gate keeps all registers but %rax, %rcx and %r11, which a system call changes, too. It
 *     uses a stack in the reserve; code behind it has no vector registers (restore_calls.c)
 *   - the text of the server and of its forks stays as it is */
#define _GNU_SOURCE
#include "restore.h"

#if defined(__x86_64__) && defined(__linux__)
#include "restore_state.h"

#include <string.h>
#include <sys/mman.h>

enum { SITE = 7, MOV_TO_EAX = 0xb8, JUMP = 0xe9, JUMP_SIZE = 5 };

/* The gates: each has the number of its site, whose place in the program is in FIXED. */
extern const char restore_gates[], restore_gates_end[];
enum { GATE = 10 };
__asm__(".text\n"
        ".hidden restore_gates, restore_gates_end, restore_jumped\n"
        ".global restore_gates, restore_gates_end\n"
        "restore_gates:\n"
        ".set number, 0\n"
        ".rept 64\n"
        "    .byte 0xb9\n" /* mov $number, %ecx */
        "    .long number\n"
        "    .byte 0xe9\n" /* jmp through_gate */
        "    .long through_gate - . - 4\n"
        "    .set number, number + 1\n"
        ".endr\n"
        "restore_gates_end:\n"
        "through_gate:\n"
        "    mov %rsp, %r11\n"
        "    movabs $" GATE_STACK_TEXT ", %rsp\n"
        "    push %r11\n"
        "    pushfq\n"
        "    cld\n"
        "    push %r9\n"
        "    push %r8\n"
        "    push %r10\n"
        "    push %rdx\n"
        "    push %rsi\n"
        "    push %rdi\n"
        "    push %rcx\n"
        "    mov %rsp, %rdi\n"
        "    call restore_jumped\n"
        "    pop %rcx\n"
        "    pop %rdi\n"
        "    pop %rsi\n"
        "    pop %rdx\n"
        "    pop %r10\n"
        "    pop %r8\n"
        "    pop %r9\n"
        "    popfq\n"
        "    pop %rsp\n"
        "    jmp *%rcx\n");
_Static_assert(MOST_SITES_PATCHED == 64, "the number of gates");

static int32_t displacement(const unsigned char *at)
{
    int32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static int is_site(const unsigned char *at)
{
    int32_t number = displacement(at + 1);
    return at[0] == MOV_TO_EAX && at[5] == 0x0f && at[6] == 0x05 && number >= 0
           && calls_are_tracked(number);
}

/* `mov $SYS_openat, %eax; mov %rdi, %rsi; mov $AT_FDCWD, %edi; syscall`: a site is its end. */
static const unsigned char open_code[] = {0xb8, 1,    1,    0,    0,    0x48, 0x89, 0xfe,
                                          0xbf, 0x9c, 0xff, 0xff, 0xff, 0x0f, 0x05};
enum { BEFORE_OPEN = sizeof open_code - SITE };

static int is_open_site(const unsigned char *at)
{
    return memcmp(at - BEFORE_OPEN, open_code, sizeof open_code) == 0;
}

/* Whether a function begins with `mov DISPLACEMENT(%rip), REGISTER`, of seven bytes. */
static int begins_with_load(const unsigned char *at)
{
    return (at[0] == 0x48 || at[0] == 0x4c) && at[1] == 0x8b && (at[2] & 0xc7) == 0x05;
}

void sites_find(uintptr_t begin, uintptr_t end)
{
    uintptr_t function = FIXED->exit_function;
    int is_inside = function >= begin && function + SITE <= end;
    if (is_inside && !begins_with_load((const unsigned char *)function))
        FIXED->exit_function = 0;
    for (uintptr_t at = begin; at + SITE <= end && FIXED->site_count < MOST_SITES; at++)
        if (is_site((const unsigned char *)at)
            || (at - begin >= BEFORE_OPEN && is_open_site((const unsigned char *)at)))
            FIXED->sites[FIXED->site_count++] = at;
    FIXED->exit_is_known = is_inside;
}

static int is_known(uintptr_t site)
{
    for (uint32_t i = 0; i < FIXED->site_count; i++)
        if (FIXED->sites[i] == site)
            return 1;
    return 0;
}

uintptr_t sites_begin(uintptr_t address)
{
    for (uint32_t i = 0; i < FIXED->site_count; i++)
        if (address - FIXED->sites[i] < SITE)
            return FIXED->sites[i];
    return address;
}

static void write_jump(uintptr_t site, uint32_t number)
{
    unsigned char jump[JUMP_SIZE] = {JUMP};
    int64_t distance = (int64_t)((uintptr_t)restore_gates + number * GATE) - (int64_t)(site + JUMP_SIZE);
    int32_t near = (int32_t)distance;
    uintptr_t page = site & ~(uintptr_t)(PAGE - 1), end = site + JUMP_SIZE;
    long length = (long)(((end - page) + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    if (near != distance || call3(SYS_mprotect, (long)page, length, PROT_READ | PROT_WRITE) != 0)
        return;
    copy_bytes(jump + 1, &near, sizeof near);
    copy_bytes((void *)site, jump, sizeof jump);
    call3(SYS_mprotect, (long)page, length, PROT_READ | PROT_EXEC);
}

void sites_rewrite(uintptr_t after)
{
    uintptr_t site = after - SITE;
    uint32_t number = FIXED->patched_count;
    if (number == MOST_SITES_PATCHED || !is_known(site))
        return;
    int is_open = *(const unsigned char *)site != MOV_TO_EAX;
    long call = is_open ? SYS_openat : displacement((const unsigned char *)site + 1);
    fixed_open(1);
    FIXED->patched[number] = (struct patched_site){after, call, is_open};
    FIXED->patched_count++;
    fixed_open(0);
    write_jump(site, number);
}

void sites_rewrite_write(void)
{
    enum { LOOKED_AT = 32 };
    for (uint32_t i = 0; i < FIXED->site_count; i++)
        if (FIXED->sites[i] - FIXED->write_function < LOOKED_AT) {
            sites_rewrite(FIXED->sites[i] + SITE);
            return;
        }
}

void sites_rewrite_exit(void)
{
    if (!FIXED->exit_function || !FIXED->exit_is_known)
        return;
    uint32_t number = FIXED->patched_count++;
    FIXED->patched[number] = (struct patched_site){0, SYS_exit_group, 0};
    write_jump(FIXED->exit_function, number);
}

#endif
