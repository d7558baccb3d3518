#define _GNU_SOURCE
/* The runner calls from handlers where nobody has saved the vector registers (restore.c). */
#if defined(__x86_64__)
#pragma GCC target("general-regs-only")
#endif
#include "blocks.h"

#if defined(__x86_64__) && defined(__linux__)
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "load_address.h"
#include "protocol.h"

/* Where the memory file is mapped: far from all that the kernel gives out, and from the reserve
 * (restore_state.h), so that no overrun of the program reaches it. */
#define TABLE 0x0f0000000000ul
/* Where forks have the stack of the SIGTRAP handler; the addresses below it are not mapped. */
#define HANDLER_STACK 0x0e0000000000ul
enum { HANDLER_STACK_SIZE = 64 << 10, BREAKPOINT = 0xcc };
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static struct block_table *table; /* NULL: there are no breakpoints */
static uint64_t table_size;
static uintptr_t bases[MOST_CODE_SEGMENTS]; /* load address of the file of each segment */
static uint64_t current_run; /* in a fork that runs the program */
static struct sigaction own_action; /* what the program has set for SIGTRAP before its run */

static uint8_t *at_offset(uint64_t offset)
{
    return (uint8_t *)table + offset;
}

static int is_inside(uint64_t offset, uint64_t length)
{
    return offset <= table_size && length <= table_size - offset;
}

/* Whether a segment in memory has the same bytes as in its file. Code that the dynamic loader has
 * relocated has not. */
static int is_as_in_file(const struct code_segment *segment, uintptr_t base)
{
    const uint8_t *memory = (const uint8_t *)(base + segment->address);
    const uint8_t *original = at_offset(segment->original);
    if (!is_inside(segment->code, segment->length) || !is_inside(segment->original, segment->length)
        || !is_inside(segment->sites, segment->length / 8) || segment->filled_to > segment->length)
        return 0;
    for (uint64_t i = segment->filled_from; i < segment->filled_to; i++)
        if (memory[i] != original[i])
            return 0;
    return 1;
}

static int map_table(void)
{
    struct stat facts;
    const int flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
    if (fstat(FD_CODE, &facts) < 0 || (size_t)facts.st_size < sizeof *table)
        return 0;
    void *at = mmap((void *)TABLE, (size_t)facts.st_size, PROT_READ | PROT_WRITE, flags, FD_CODE, 0);
    if (at != (void *)TABLE) {
        if (at != MAP_FAILED)
            munmap(at, (size_t)facts.st_size);
        return 0;
    }
    table = at;
    table_size = (uint64_t)facts.st_size;
    return 1;
}

static int map_stack(void)
{
    return mmap((void *)HANDLER_STACK, HANDLER_STACK_SIZE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
           == (void *)HANDLER_STACK;
}

/* The load address of a library that is sought by its file. */
struct sought {
    const struct code_segment *segment;
    uintptr_t base;
};

static int is_sought(struct dl_phdr_info *info, size_t size, void *data)
{
    struct sought *sought = data;
    struct stat facts;
    (void)size;
    if (!info->dlpi_name[0] || stat(info->dlpi_name, &facts) < 0
        || facts.st_dev != sought->segment->device || facts.st_ino != sought->segment->inode)
        return 0;
    sought->base = info->dlpi_addr;
    return 1;
}

/* Finds where a segment is loaded; returns 0 if it is not, or other code is there. */
static int find_base(const struct code_segment *segment, uintptr_t *base)
{
    struct sought sought = {segment, 0};
    if (!segment->inode)
        sought.base = program_base();
    else if (!dl_iterate_phdr(is_sought, &sought))
        return 0;
    *base = sought.base;
    return is_as_in_file(segment, sought.base);
}

/* The program's own segments are checked before the first is replaced. */
static int replace_code(void)
{
    const int flags = MAP_PRIVATE | MAP_FIXED;
    if (table->segment_count > MOST_CODE_SEGMENTS
        || !is_inside(table->hits_at, table->most_hits * sizeof(struct block_hit)))
        return 0;
    for (uint64_t i = 0; i < table->segment_count; i++) {
        struct code_segment *segment = &table->segments[i];
        segment->placed = (uint64_t)find_base(segment, &bases[i]);
        if (!segment->placed && !segment->inode)
            return 0;
    }
    for (uint64_t i = 0; i < table->segment_count; i++) {
        const struct code_segment *segment = &table->segments[i];
        void *at = (void *)(bases[i] + segment->address);
        if (segment->placed
            && mmap(at, segment->length, PROT_READ | PROT_EXEC, flags, FD_CODE, (off_t)segment->code)
                   != at)
            _exit(127); /* the program's code may be gone */
    }
    return 1;
}

void blocks_arm(void)
{
    if (fcntl(FD_CODE, F_GETFD) < 0)
        return;
    if (map_table()) {
        if (map_stack() && replace_code()) {
            table->armed = 1;
        } else {
            munmap(table, table_size);
            table = NULL;
        }
    }
    close(FD_CODE);
}

int blocks_own(uintptr_t address)
{
    return (table && address - (uintptr_t)table < table_size)
           || address - HANDLER_STACK < HANDLER_STACK_SIZE;
}

static void note(uint64_t run, uint64_t address)
{
    uint64_t number = __atomic_fetch_add(&table->hit_count, 1, __ATOMIC_ACQ_REL);
    struct block_hit *hits = (struct block_hit *)at_offset(table->hits_at);
    if (number < table->most_hits)
        hits[number] = (struct block_hit){run, address};
}

int blocks_hit(ucontext_t *context, uint64_t run)
{
    greg_t *at = &context->uc_mcontext.gregs[REG_RIP];
    for (uint64_t i = 0; table && i < table->segment_count; i++) {
        const struct code_segment *segment = &table->segments[i];
        uint64_t address = (uint64_t)*at - 1 - bases[i], offset = address - segment->address;
        if (!segment->placed || offset >= segment->length)
            continue;
        if (!(at_offset(segment->sites)[offset / 8] >> offset % 8 & 1))
            return 0;
        /* Another thread or process may have hit it in the meantime: the code goes on. */
        uint8_t *code = at_offset(segment->code) + offset;
        uint8_t original = at_offset(segment->original)[offset];
        if (__atomic_exchange_n(code, original, __ATOMIC_ACQ_REL) == BREAKPOINT)
            note(run, address + segment->key);
        *at -= 1;
        return 1;
    }
    return 0;
}

/* The handler of SIGTRAP in a fork. A signal that no breakpoint of ddfuzz has raised takes the
 * effect that the program has set for it. */
static void on_trap(int signal, siginfo_t *info, void *data)
{
    ucontext_t *context = data;
    if (info->si_code == SI_KERNEL && blocks_hit(context, current_run))
        return;
    sigaction(signal, &own_action, NULL);
    if (info->si_code == SI_KERNEL)
        context->uc_mcontext.gregs[REG_RIP] -= 1; /* the program's own `int3` is executed again */
    else
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal); /* once this handler returns */
}

void blocks_begin(uint64_t run, ucontext_t *context)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_sp = (void *)HANDLER_STACK, .ss_size = HANDLER_STACK_SIZE}, before;
    sigset_t trap;
    if (!table)
        return;
    current_run = run;
    action.sa_sigaction = on_trap;
    sigfillset(&action.sa_mask); /* another handler would hit breakpoints while SIGTRAP is blocked */
    sigaction(SIGTRAP, &action, &own_action);
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    if (context) {
        sigdelset(&context->uc_sigmask, SIGTRAP);
        if (context->uc_stack.ss_flags & SS_DISABLE)
            context->uc_stack = stack;
        return;
    }
    sigprocmask(SIG_UNBLOCK, &trap, NULL);
    if (sigaltstack(NULL, &before) == 0 && before.ss_flags & SS_DISABLE)
        sigaltstack(&stack, NULL);
}

#else
void blocks_arm(void) {}

void blocks_begin(uint64_t run, ucontext_t *context)
{
    (void)run, (void)context;
}

int blocks_hit(ucontext_t *context, uint64_t run)
{
    (void)context, (void)run;
    return 0;
}

int blocks_own(uintptr_t address)
{
    (void)address;
    return 0;
}
#endif
