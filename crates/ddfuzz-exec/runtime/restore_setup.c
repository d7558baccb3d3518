/* Setting up the runner: in the server what all runners need, and in each of them its descriptors,
 * handlers, the watch of memory and the filter of system calls. */
#define _GNU_SOURCE
#include "restore.h"

#if defined(__x86_64__) && defined(__linux__)
#include "restore_state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve.h"

enum { SHADOW_STATUS = 0x5005 /* command of arch_prctl */, HAS_FSGSBASE = 2 /* of AT_HWCAP2 */ };
#define DISARMED_IN_HANDLER (1u << 31) /* SS_AUTODISARM */
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Glibc 2.35 and later; the offset of the kernel's bytes from the thread pointer. */
#pragma weak __rseq_offset
#pragma weak __rseq_size
extern const ptrdiff_t __rseq_offset;
extern const unsigned int __rseq_size;

/* In the server */

static long map_reserve(long at, long size, long flags, int fd)
{
    long protection = fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ;
    flags |= MAP_FIXED_NOREPLACE;
    return defer_call(SYS_mmap, (long)RESERVE + at, size, protection, flags, fd, 0)
                   == (long)RESERVE + at
               ? 0
               : -1;
}

static int map_state(void)
{
    const long own = MAP_PRIVATE | MAP_ANONYMOUS;
    return map_reserve(AT_FIXED, FIXED_SIZE, own, -1) == 0
           && map_reserve(AT_RUN, RUN_SIZE, own, -1) == 0
           && map_reserve(AT_FRAME, FRAME_SIZE, own, -1) == 0
           && map_reserve(AT_STACK, STACK_SIZE, own, -1) == 0
           && map_reserve(AT_GATE_STACK, GATE_STACK_SIZE, own, -1) == 0
           && map_reserve(AT_PAGES, MOST_COPIED / PAGE, own, -1) == 0;
}

/* The size of a signal frame's floating point state: as the kernel notes in its unused bytes. */
static size_t fpu_size(const unsigned char *fpu)
{
    uint32_t magic, size;
    memcpy(&magic, fpu + 464, sizeof magic);
    memcpy(&size, fpu + 468, sizeof size);
    return magic == 0x46505853 ? size : 512;
}

static enum unfit keep_context(const ucontext_t *context)
{
    const unsigned char *fpu = (const unsigned char *)context->uc_mcontext.fpregs;
    FIXED->fpu_size = fpu ? fpu_size(fpu) : 0;
    if (!fpu || FIXED->fpu_size > FPU_SIZE)
        return UNFIT_POINT;
    copy_bytes(&FIXED->context, context, sizeof *context);
    copy_bytes(FIXED->fpu, fpu, FIXED->fpu_size);
    memcpy(&FIXED->signals.mask, &context->uc_sigmask, sizeof FIXED->signals.mask);
    FIXED->signals.stack = context->uc_stack;
    FIXED->context.uc_stack = (stack_t){
        .ss_sp = (void *)(RESERVE + AT_STACK),
        .ss_size = STACK_SIZE,
        .ss_flags = (int)DISARMED_IN_HANDLER,
    };
    memset(&FIXED->context.uc_sigmask, 0, sizeof(unsigned long));
    return UNFIT_NONE;
}

static int is_null(int fd)
{
    struct stat facts;
    return call2(SYS_fstat, fd, (long)&facts) == 0 && serve_is_null(&facts);
}

/* Whether an output may be written to by a run: it leads to /dev/null, or to its capture. */
static int is_harmless(int fd)
{
    struct stat facts, capture;
    if (call2(SYS_fstat, fd, (long)&facts) != 0)
        return 0;
    return is_null(fd)
           || (call2(SYS_fstat, FD_CAPTURES + fd - STDOUT_FILENO, (long)&capture) == 0
               && capture.st_dev == facts.st_dev && capture.st_ino == facts.st_ino);
}

/* Notes the program's descriptors; stdin is the input's from its beginning. */
static enum unfit keep_descriptors(void)
{
    for (int fd = 0; fd < FDS; fd++) {
        long flags = call3(SYS_fcntl, fd, F_GETFD, 0);
        if (flags < 0 && fd != STDIN_FILENO)
            continue;
        if (FIXED->original_count == MOST_ORIGINALS)
            return UNFIT_DESCRIPTORS;
        struct original *original = &FIXED->originals[FIXED->original_count++];
        int32_t status = (int32_t)call3(SYS_fcntl, fd, F_GETFL, 0);
        *original =
            (struct original){fd, -1, (int32_t)flags, status, call3(SYS_lseek, fd, 0, SEEK_CUR)};
        if (fd == STDIN_FILENO)
            *original = (struct original){fd, -1, 0, O_RDONLY, 0};
        else if (fd <= STDERR_FILENO) {
            /* A forked run may have set flags since the server has begun. */
            int begun = serve_output_flags(fd);
            original->offset = -1;
            original->status = begun < 0 ? status : begun;
            FIXED->is_null_output[fd] = is_null(fd) && (status & O_ACCMODE) != O_RDONLY;
        } else if ((status & O_ACCMODE) != O_RDONLY)
            return UNFIT_DESCRIPTORS;
    }
    int harmless = is_harmless(STDOUT_FILENO) && is_harmless(STDERR_FILENO);
    return harmless ? UNFIT_NONE : UNFIT_OUTPUTS;
}

static void identify(const char *path, struct file_identity *identity)
{
    struct stat facts;
    if (call2(SYS_stat, (long)path, (long)&facts) == 0)
        *identity = (struct file_identity){facts.st_dev, facts.st_ino};
}

static void keep_thread(int error)
{
    struct stat facts;
    uint64_t shadow = 0;
    FIXED->error = error;
    FIXED->reads_bases = (getauxval(AT_HWCAP2) & HAS_FSGSBASE) != 0;
    run_get_bases(&FIXED->fs, &FIXED->gs);
    FIXED->brk = (uintptr_t)call1(SYS_brk, 0);
    FIXED->mode_mask = (unsigned)call1(SYS_umask, 0);
    call1(SYS_umask, FIXED->mode_mask);
    FIXED->exit_function = (uintptr_t)_exit;
    FIXED->write_function = (uintptr_t)write;
    if (&__rseq_size && __rseq_size > 0)
        FIXED->rseq = FIXED->fs + (uintptr_t)__rseq_offset;
    if (call2(SYS_stat, (long)"/proc", (long)&facts) == 0)
        FIXED->proc_device = facts.st_dev;
    identify(".", &FIXED->directory_identity);
    identify("/", &FIXED->root_identity);
    FIXED->has_shadow = call2(SYS_arch_prctl, SHADOW_STATUS, (long)&shadow) == 0 && shadow != 0;
}

enum unfit restore_prepare(const ucontext_t *context, int error)
{
    if (!context)
        return UNFIT_POINT;
    if (!map_state())
        return UNFIT_ADDRESSES;
    keep_thread(error);
    if (FIXED->has_shadow)
        return UNFIT_SHADOW;
    enum unfit unfit = keep_context(context);
    if (unfit == UNFIT_NONE)
        unfit = keep_descriptors();
    if (unfit == UNFIT_NONE) {
        errno = error; /* part of what is copied */
        unfit = memory_copy();
        greg_t *at = &FIXED->context.uc_mcontext.gregs[REG_RIP];
        *at = (greg_t)sites_begin((uintptr_t)*at);
    }
    return unfit;
}

void restore_forget(void)
{
    call2(SYS_munmap, (long)RESERVE, RESERVE_SIZE);
    if (call3(SYS_close_range, FD_LOWEST, FD_LAST_RUNNERS, 0) != 0)
        for (int fd = FD_LOWEST; fd <= FD_LAST_RUNNERS; fd++)
            call1(SYS_close, fd);
}

/* In the runner */

void setup_tell(enum unfit unfit)
{
    struct runner_message message = {0, unfit, 0};
    run_write_whole(FD_REFUSALS, &message, sizeof message);
    if (unfit != UNFIT_NONE)
        call1(SYS_exit_group, 0);
}

/* Opens the working directory, with a number above the program's; -1 if that fails. */
static int32_t open_directory(void)
{
    long opened = call3(SYS_open, (long)".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    long kept = opened < 0 ? -1 : call3(SYS_fcntl, opened, F_DUPFD_CLOEXEC, FD_BACKUPS);
    if (opened >= 0)
        call1(SYS_close, opened);
    return kept < 0 ? -1 : (int32_t)kept;
}

static int back_up_descriptors(void)
{
    FIXED->directory = open_directory();
    if (call3(SYS_dup3, FD_INPUT, STDIN_FILENO, 0) < 0)
        return 0;
    for (uint32_t i = 0; i < FIXED->original_count; i++) {
        struct original *original = &FIXED->originals[i];
        long backup = call3(SYS_fcntl, original->fd, F_DUPFD_CLOEXEC, FD_BACKUPS);
        if (backup < 0)
            return 0;
        original->backup = (int32_t)backup;
    }
    for (int at = 0; at < 2; at++) {
        long fd = call3(SYS_fcntl, STDOUT_FILENO + at, F_DUPFD_CLOEXEC, FD_BACKUPS);
        if (fd < 0)
            return 0;
        FIXED->outputs[at] = (int32_t)fd;
    }
    return 1;
}

static void set_handler(int signal, void (*handler)(int, siginfo_t *, void *))
{
    struct kernel_signal_action action = {
        handler, SA_SIGINFO | SA_ONSTACK | 0x04000000 /* SA_RESTORER */, defer_return, 0};
    call4(SYS_rt_sigaction, signal, (long)&action, 0, sizeof action.mask);
}

/* Notes the program's actions, and puts the runner's handlers in their place. */
static void take_signals(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    for (int signal = 1; signal < SIGNALS; signal++)
        call4(SYS_rt_sigaction, signal, 0, (long)&FIXED->signals.actions[signal],
              sizeof(unsigned long));
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        set_handler(crashes[i], run_on_crash);
    set_handler(SIGSYS, run_on_call);
}

static enum unfit set_up(void)
{
    const long batch = MAP_SHARED;
    if (!back_up_descriptors())
        return UNFIT_DESCRIPTORS;
    serve_unmap_page();
    map_reserve(AT_INPUTS, MAPPED_INPUTS, batch, FD_BATCH); /* is not there for named inputs */
    take_signals();
    memory_watch();
    if (FIXED->uffd < 0 && memory_size() > MOST_ALWAYS_COPIED)
        return UNFIT_SIZE;
    RUN->mode_mask = FIXED->mode_mask;
    RUN->brk = FIXED->brk;
    return filter_install() == 0 ? UNFIT_NONE : UNFIT_FILTER;
}

void restore_run(void)
{
    errno = FIXED->error;
    enum unfit unfit = set_up();
    if (unfit != UNFIT_NONE)
        setup_tell(unfit);
    restore_on_stack(RESERVE + AT_STACK + STACK_SIZE, run_serve);
}

#else
enum unfit restore_prepare(const ucontext_t *context, int error)
{
    (void)context, (void)error;
    return UNFIT_POINT;
}

void restore_run(void)
{
    for (;;)
        ;
}

void restore_forget(void) {}
#endif
