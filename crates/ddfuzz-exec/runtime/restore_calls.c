/* Which system calls a run in the runner may make. One table says it, a line for each call; what
 * has no line is refused before it happens, and the run is made by a fork.
 *
 *   passes    the kernel performs it without asking us, if the condition holds: it changes nothing
 *             that the next run could see. Where the condition fails, the handler decides
 *   tracked   the handler performs it and notes what it has changed, which calls_undo undoes
 *   refused   no handler, or a handler that returns 0
 *
 * Signal actions, the signal mask, the signal stack and the file mode mask are only noted: no
 * signal of the program is ever delivered to a runner (who crashes or sends one is refused), and
 * no file is created. */
#define _GNU_SOURCE
/* Where a call comes by a jump, nobody has saved the vector registers. */
#if defined(__x86_64__)
#pragma GCC target("general-regs-only")
#endif
#include "restore.h"

#if defined(__x86_64__) && defined(__linux__)
#include "restore_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

typedef int handler(const struct stopped_call *call, long *result);

static int perform(const struct stopped_call *call, long *result)
{
    const long *a = call->a;
    *result = defer_call(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return 1;
}

static int refuse(const struct stopped_call *call, long *result)
{
    (void)call, (void)result;
    return 0;
}

/* Descriptors */

static void touch(long fd)
{
    RUN->touched[fd / 64] |= 1ul << (fd % 64);
}

/* Notes a new descriptor; 0 if the program may not have it. */
static int touch_new(long *result)
{
    if (*result < 0)
        return 1;
    if (!is_one_of_fds(*result)) {
        call1(SYS_close, *result);
        return 0;
    }
    touch(*result);
    return 1;
}

static int of_path(const struct stopped_call *call, long *result)
{
    struct stat facts;
    long error;
    return paths_facts(AT_FDCWD, call->a[0], &facts, &error) && perform(call, result);
}

static int of_path_at(const struct stopped_call *call, long *result)
{
    struct stat facts;
    long error, directory = call->a[0];
    int known = (int)directory == AT_FDCWD || is_one_of_fds(directory);
    return known && paths_facts(directory, call->a[1], &facts, &error) && perform(call, result);
}

/* The call newfstatat. Of a descriptor, the filter lets it pass, but a call that comes by a jump is
 * handled here all the same. */
static int of_facts_at(const struct stopped_call *call, long *result)
{
    if (is_one_of_fds(call->a[0]) && (int)call->a[3] == AT_EMPTY_PATH)
        return perform(call, result);
    return of_path_at(call, result);
}

/* Opens files to read, directories and /dev/null. */
static int open_at(long directory, long path, long flags, long *result)
{
    const long changing = O_CREAT | O_TRUNC | O_PATH | (O_TMPFILE & ~O_DIRECTORY);
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    struct stat facts;
    long error;
    if (flags & changing || !paths_facts(directory, path, &facts, &error))
        return 0;
    if (error == 0 ? !paths_is_harmless(&facts, writes) : writes)
        return 0;
    *result = call4(SYS_openat, directory, path, flags, 0);
    return touch_new(result);
}

static int of_open(const struct stopped_call *call, long *result)
{
    return open_at(AT_FDCWD, call->a[0], call->a[1], result);
}

static int of_openat(const struct stopped_call *call, long *result)
{
    const long *a = call->a;
    int known = (int)a[0] == AT_FDCWD || is_one_of_fds(a[0]);
    return known && open_at(a[0], a[1], a[2], result);
}

static int of_close(const struct stopped_call *call, long *result)
{
    if (!is_one_of_fds(call->a[0]))
        return 0;
    touch(call->a[0]);
    return perform(call, result);
}

static int of_dup(const struct stopped_call *call, long *result)
{
    return is_one_of_fds(call->a[0]) && perform(call, result) && touch_new(result);
}

static int of_dup_to(const struct stopped_call *call, long *result)
{
    if (!is_one_of_fds(call->a[0]) || !is_one_of_fds(call->a[1]))
        return 0;
    touch(call->a[1]);
    return perform(call, result);
}

static int of_fcntl(const struct stopped_call *call, long *result)
{
    long fd = call->a[0];
    if (!is_one_of_fds(fd))
        return 0;
    switch (call->a[1]) {
    case F_GETFD: /* by a jump: the filter lets these pass */
    case F_GETFL:
        return perform(call, result);
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return perform(call, result) && touch_new(result);
    case F_SETFD:
        touch(fd);
        return perform(call, result);
    case F_SETFL: /* these flags belong to the open file, which forks share */
        RUN->status_changed = 1;
        return perform(call, result);
    default:
        return 0;
    }
}

/* A pipe to itself, such as to wait for a signal. Nothing can be written to it. */
static int of_pipe(const struct stopped_call *call, long *result)
{
    int ends[2];
    *result = call2(SYS_pipe2, (long)ends, call->number == SYS_pipe2 ? call->a[1] : 0);
    if (*result < 0)
        return 1;
    if (!is_one_of_fds(ends[0]) || !is_one_of_fds(ends[1])) {
        call1(SYS_close, ends[0]);
        call1(SYS_close, ends[1]);
        return 0;
    }
    touch(ends[0]);
    touch(ends[1]);
    copy_bytes((void *)call->a[0], ends, sizeof ends);
    return 1;
}

static int move(const struct stopped_call *call, long *result)
{
    perform(call, result);
    RUN->moved |= *result == 0;
    return 1;
}

static int of_chdir(const struct stopped_call *call, long *result)
{
    struct stat facts;
    long error;
    return FIXED->directory >= 0 && paths_facts(AT_FDCWD, call->a[0], &facts, &error)
           && (error < 0 || paths_may_move_to(&facts)) && move(call, result);
}

static int of_fchdir(const struct stopped_call *call, long *result)
{
    struct stat facts;
    if (FIXED->directory < 0 || !is_one_of_fds(call->a[0]))
        return 0;
    return (call2(SYS_fstat, call->a[0], (long)&facts) < 0 || paths_may_move_to(&facts))
           && move(call, result);
}

/* A socket that the system refuses, as a sandbox does, or a local one. Neither changes anything as
 * long as it is not connected. */
static int of_socket(const struct stopped_call *call, long *result)
{
    const long flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    perform(call, result);
    if (*result < 0)
        return *result == -EAFNOSUPPORT || *result == -EPERM || *result == -EACCES;
    if (call->a[0] == AF_UNIX && (call->a[1] & ~flags) == SOCK_STREAM)
        return touch_new(result);
    call1(SYS_close, *result);
    return 0;
}

/* Connecting to a local service that does not exist. */
static int of_connect(const struct stopped_call *call, long *result)
{
    char bytes[sizeof(struct sockaddr_un) + 1]; /* the path need not end by a zero byte */
    struct stat facts;
    sa_family_t family;
    const long before = offsetof(struct sockaddr_un, sun_path), length = call->a[2];
    if (!is_one_of_fds(call->a[0]) || length <= before || length >= (long)sizeof bytes)
        return 0;
    copy_bytes(bytes, (const void *)call->a[1], (size_t)length);
    copy_bytes(&family, bytes, sizeof family);
    bytes[length] = 0;
    if (family != AF_UNIX || bytes[before] == 0)
        return 0;
    long error = call4(SYS_newfstatat, AT_FDCWD, (long)(bytes + before), (long)&facts, 0);
    return (error == -ENOENT || error == -ENOTDIR) && perform(call, result) && *result < 0;
}

/* Whether a write to an output has no effect and cannot fail: it leads to /dev/null as at the fork
 * point, and the bytes lie where memory can be. */
static int goes_nowhere(unsigned fd, uintptr_t bytes, uintptr_t length)
{
    const uintptr_t most = 0x7ffff000, end_of_memory = 0x7ffffffff000;
    return fd <= STDERR_FILENO && FIXED->is_null_output[fd] && !RUN->captured
           && !(RUN->touched[0] >> fd & 1) && length <= most && bytes <= end_of_memory - length;
}

/* Comes here by a jump: the filter lets pass what is written to an output. */
static int of_write(const struct stopped_call *call, long *result)
{
    unsigned fd = (unsigned)call->a[0];
    if (fd != STDOUT_FILENO && fd != STDERR_FILENO)
        return 0;
    *result = call->a[2];
    return goes_nowhere(fd, (uintptr_t)call->a[1], (uintptr_t)call->a[2])
           || perform(call, result);
}

/* Copies to an output, from a descriptor without a given offset of the output. */
static int of_copy_to_output(long out, long in, long out_offset)
{
    return (out == STDOUT_FILENO || out == STDERR_FILENO) && is_one_of_fds(in) && !out_offset;
}

static int of_copy_range(const struct stopped_call *call, long *result)
{
    return of_copy_to_output(call->a[2], call->a[0], call->a[3]) && perform(call, result);
}

static int of_sendfile(const struct stopped_call *call, long *result)
{
    return of_copy_to_output(call->a[0], call->a[1], 0) && perform(call, result);
}

static int of_poll(const struct stopped_call *call, long *result)
{
    const struct pollfd *fds = (const struct pollfd *)call->a[0];
    for (long i = 0; i < call->a[1]; i++)
        if (fds[i].fd >= 0 && !is_one_of_fds(fds[i].fd))
            return 0;
    return perform(call, result);
}

static int of_select(const struct stopped_call *call, long *result)
{
    return (call->a[0] <= 0 || is_one_of_fds(call->a[0] - 1)) && perform(call, result);
}

/* Memory. A run may change the mappings that it has added itself, which RUN->own lists. Those that
 * the program has at the fork point stay, or are put back. */

static int is_own(uintptr_t begin, uintptr_t length)
{
    for (uint64_t i = 0; i < RUN->own_count; i++) {
        const struct span *own = &RUN->own[i];
        if (begin >= own->begin && begin <= own->end && length <= own->end - begin)
            return 1;
    }
    return 0;
}

static uintptr_t whole_pages(long length)
{
    return ((uintptr_t)length + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
}

/* Adds a mapping of the run to RUN->own, joined with an adjacent one if there is one; returns 0 if
 * the list is full. */
static int own(uintptr_t begin, uintptr_t length)
{
    if (is_own(begin, length))
        return 1;
    for (uint64_t i = 0; i < RUN->own_count; i++) {
        struct span *known = &RUN->own[i];
        if (begin + length == known->begin) {
            known->begin = begin;
            return 1;
        }
        if (begin == known->end) {
            known->end += length;
            return 1;
        }
    }
    if (RUN->own_count == MOST_OWN)
        return 0;
    RUN->own[RUN->own_count++] = (struct span){begin, begin + length};
    return 1;
}

/* Notes the mapping that a call with this result has made. Returns 0 if the run must be refused:
 * also for lack of memory, since the reserve takes memory that a new process might still get. */
static int own_result(long result, long length)
{
    if (result < 0 && result > -PAGE)
        return result != -ENOMEM;
    if (own((uintptr_t)result, whole_pages(length)))
        return 1;
    call2(SYS_munmap, result, length);
    return 0;
}

static int of_mmap(const struct stopped_call *call, long *result)
{
    const long *a = call->a;
    long flags = a[3], odd = MAP_GROWSDOWN | MAP_LOCKED | MAP_HUGETLB;
    int private = (flags & MAP_TYPE) == MAP_PRIVATE, of_file = !(flags & MAP_ANONYMOUS);
    if (flags & odd || a[1] < 0)
        return 0;
    /* A fixed address must lie in a mapping of the run; else the kernel chooses free memory. */
    if (flags & MAP_FIXED && !is_own((uintptr_t)a[0], whole_pages(a[1])))
        return 0;
    /* Descriptors of the program are open for reading only, but for the outputs. */
    if (of_file && (!is_one_of_fds(a[4]) || (!private && a[2] & PROT_WRITE)))
        return 0;
    return memory_unmap_lost() && perform(call, result) && own_result(*result, a[1]);
}

static int of_own_memory(const struct stopped_call *call, long *result)
{
    int inside = call->a[1] >= 0 && is_own((uintptr_t)call->a[0], whole_pages(call->a[1]));
    return inside && perform(call, result) && *result != -ENOMEM;
}

/* Whether memory is older than the run, plain, and was not unmapped by it. */
static int is_old(uintptr_t begin, uintptr_t length)
{
    for (uint64_t i = 0; i < RUN->lost_count; i++)
        if (begin < RUN->lost[i].end && RUN->lost[i].begin < begin + length)
            return 0;
    return length > 0 && memory_plain(begin, length);
}

static int of_munmap(const struct stopped_call *call, long *result)
{
    uintptr_t begin = (uintptr_t)call->a[0], length = whole_pages(call->a[1]);
    if (call->a[1] > 0 && begin % PAGE == 0 && is_old(begin, length)) {
        *result = 0;
        return memory_lose(begin, length);
    }
    return of_own_memory(call, result);
}

static int of_advice(const struct stopped_call *call, long *result)
{
    long advice = call->a[2];
    /* Pages without memory count as written, so they are put back. */
    if (advice == MADV_DONTNEED && call->a[1] > 0
        && is_old((uintptr_t)call->a[0], whole_pages(call->a[1]))) {
        RUN->discarded = 1;
        return perform(call, result);
    }
    int plain = (advice >= MADV_NORMAL && advice <= MADV_DONTNEED) || advice == MADV_FREE
                || advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE;
    return plain && of_own_memory(call, result);
}

static int of_mremap(const struct stopped_call *call, long *result)
{
    const long *a = call->a;
    if (a[1] <= 0 || a[2] < 0 || a[3] & ~MREMAP_MAYMOVE
        || !is_own((uintptr_t)a[0], whole_pages(a[1])))
        return 0;
    return memory_unmap_lost() && perform(call, result) && own_result(*result, a[2]);
}

static int of_brk(const struct stopped_call *call, long *result)
{
    uintptr_t wanted = (uintptr_t)call->a[0];
    if ((wanted && wanted < FIXED->brk) || (wanted > RUN->brk && !memory_unmap_lost()))
        return 0;
    perform(call, result);
    RUN->brk = (uintptr_t)*result;
    return wanted <= RUN->brk; /* else a new process might have that memory */
}

/* Attributes that are only noted */

static const struct signals *signals_now(void)
{
    return RUN->signals_changed ? &RUN->signals : &FIXED->signals;
}

static struct signals *signals_to_change(void)
{
    if (!RUN->signals_changed)
        copy_bytes(&RUN->signals, &FIXED->signals, sizeof RUN->signals);
    RUN->signals_changed = 1;
    return &RUN->signals;
}

static int of_action(const struct stopped_call *call, long *result)
{
    const long *a = call->a;
    const unsigned long unblockable = 1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1);
    const unsigned long known = 0x07 | 0x800 | 0x04000000 | 0x08000000 | 0x10000000 | 0x40000000
                                | 0x80000000; /* UAPI_SA_FLAGS of the kernel, and SA_RESTORER */
    int valid = a[0] > 0 && a[0] < SIGNALS && a[3] == sizeof(unsigned long)
                && !(a[1] && (a[0] == SIGKILL || a[0] == SIGSTOP));
    *result = valid ? 0 : -EINVAL;
    if (!valid)
        return 1;
    struct kernel_signal_action last = signals_now()->actions[a[0]];
    if (a[1]) {
        struct kernel_signal_action wanted = *(const struct kernel_signal_action *)a[1];
        wanted.flags &= known;
        wanted.mask &= ~unblockable;
        signals_to_change()->actions[a[0]] = wanted;
    }
    if (a[2])
        *(struct kernel_signal_action *)a[2] = last;
    return 1;
}

static int of_mask(const struct stopped_call *call, long *result)
{
    const long *a = call->a;
    const unsigned long unblockable = 1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1);
    unsigned long last = signals_now()->mask, mask = last;
    *result = -EINVAL;
    if (a[3] != sizeof mask)
        return 1;
    if (a[1]) {
        unsigned long set = *(const unsigned long *)a[1] & ~unblockable;
        switch (a[0]) {
        case SIG_BLOCK: mask |= set; break;
        case SIG_UNBLOCK: mask &= ~set; break;
        case SIG_SETMASK: mask = set; break;
        default: return 1;
        }
    }
    if (a[2])
        *(unsigned long *)a[2] = last;
    if (mask != last)
        signals_to_change()->mask = mask;
    *result = 0;
    return 1;
}

static int of_stack(const struct stopped_call *call, long *result)
{
    const long *a = call->a;
    stack_t last = signals_now()->stack;
    *result = 0;
    if (a[0]) {
        stack_t wanted = *(const stack_t *)a[0];
        if (wanted.ss_flags == SS_DISABLE)
            wanted = (stack_t){.ss_flags = SS_DISABLE};
        else if (wanted.ss_flags != 0)
            return 0;
        else if (wanted.ss_size < (size_t)MINSIGSTKSZ)
            *result = -ENOMEM;
        if (*result == 0)
            signals_to_change()->stack = wanted;
    }
    if (*result == 0 && a[1])
        *(stack_t *)a[1] = last;
    return 1;
}

static int of_mode_mask(const struct stopped_call *call, long *result)
{
    *result = (long)RUN->mode_mask;
    RUN->mode_mask = (uint64_t)call->a[0] & 0777;
    return 1;
}

/* The table */

static const struct {
    long number;
    enum condition passes;
    handler *otherwise;
} table[] = {
    /* Files: the offset of stdin and of each file is set back, a new file is closed. */
    {SYS_read, OWN_FD, refuse},
    {SYS_write, OUTPUT, of_write}, /* to nowhere, or captured; all else changes a file */
    {SYS_pread64, OWN_FD, refuse},
    {SYS_readv, OWN_FD, refuse},
    {SYS_preadv, OWN_FD, refuse},
    {SYS_writev, OUTPUT, refuse},
    {SYS_lseek, OWN_FD, refuse},
    {SYS_fadvise64, OWN_FD, refuse}, /* what the kernel keeps cached */
    {SYS_getdents64, OWN_FD, refuse},
    {SYS_fstat, OWN_FD, refuse},
    {SYS_newfstatat, FACTS_OF_FD, of_facts_at},
    {SYS_statx, NEVER, of_path_at},
    {SYS_stat, NEVER, of_path},
    {SYS_lstat, NEVER, of_path},
    {SYS_access, NEVER, of_path},
    {SYS_faccessat, NEVER, of_path_at},
    {SYS_faccessat2, NEVER, of_path_at},
    {SYS_readlink, NEVER, of_path},
    {SYS_readlinkat, NEVER, of_path_at},
    {SYS_fstatfs, OWN_FD, refuse},
    {SYS_statfs, NEVER, of_path},
    {SYS_open, NEVER, of_open},
    {SYS_openat, NEVER, of_openat},
    {SYS_close, NEVER, of_close},
    {SYS_dup, NEVER, of_dup},
    {SYS_dup2, NEVER, of_dup_to},
    {SYS_dup3, NEVER, of_dup_to},
    {SYS_fcntl, ASKS_FD, of_fcntl},
    {SYS_ioctl, ASKS_OUTPUT, refuse},
    {SYS_copy_file_range, NEVER, of_copy_range}, /* to an output as write */
    {SYS_splice, NEVER, of_copy_range},
    {SYS_sendfile, NEVER, of_sendfile},
    {SYS_pipe, NEVER, of_pipe},
    {SYS_pipe2, NEVER, of_pipe},
    {SYS_chdir, NEVER, of_chdir}, /* the directory is changed back */
    {SYS_fchdir, NEVER, of_fchdir},
    {SYS_socket, NEVER, of_socket}, /* is closed */
    {SYS_connect, NEVER, of_connect}, /* to nobody */
    {SYS_poll, NEVER, of_poll}, /* asks, and waits */
    {SYS_select, NEVER, of_select},
    {SYS_pselect6, NEVER, of_select},
    /* Memory: new mappings are unmapped, the heap is shrunk, plain memory is mapped again. */
    {SYS_brk, NEVER, of_brk},
    {SYS_mmap, NEVER, of_mmap},
    {SYS_munmap, NEVER, of_munmap},
    {SYS_mprotect, NEVER, of_own_memory},
    {SYS_mremap, NEVER, of_mremap},
    {SYS_madvise, NEVER, of_advice},
    /* Attributes that are only noted. */
    {SYS_rt_sigaction, NEVER, of_action},
    {SYS_rt_sigprocmask, NEVER, of_mask},
    {SYS_sigaltstack, NEVER, of_stack},
    {SYS_umask, NEVER, of_mode_mask},
    /* Questions with the same answer for each process of this user, or with a new one each time. */
    {SYS_getuid, ALWAYS, NULL},
    {SYS_geteuid, ALWAYS, NULL},
    {SYS_getgid, ALWAYS, NULL},
    {SYS_getegid, ALWAYS, NULL},
    {SYS_getresuid, ALWAYS, NULL},
    {SYS_getresgid, ALWAYS, NULL},
    {SYS_getgroups, ALWAYS, NULL},
    {SYS_getcwd, ALWAYS, NULL},
    {SYS_getpid, ALWAYS, NULL}, /* as good as the number of any other process */
    {SYS_gettid, ALWAYS, NULL},
    {SYS_getppid, ALWAYS, NULL},
    {SYS_getpgrp, ALWAYS, NULL},
    {SYS_uname, ALWAYS, NULL},
    {SYS_sysinfo, ALWAYS, NULL},
    {SYS_sched_getaffinity, ALWAYS, NULL},
    {SYS_getrlimit, ALWAYS, NULL},
    {SYS_prlimit64, ASKS_LIMIT, refuse},
    {SYS_getrandom, ALWAYS, NULL},
    {SYS_time, ALWAYS, NULL},
    {SYS_gettimeofday, ALWAYS, NULL},
    {SYS_getcpu, ALWAYS, NULL},
    {SYS_clock_gettime, WALL_CLOCK, refuse}, /* others count the CPU time of all runs */
    {SYS_clock_getres, ALWAYS, NULL},
    /* Time passes, and nobody is woken: there is one thread. */
    {SYS_nanosleep, ALWAYS, NULL},
    {SYS_clock_nanosleep, WALL_CLOCK, refuse},
    {SYS_sched_yield, ALWAYS, NULL},
    {SYS_futex, WAKES, refuse},
};

enum { CALLS = sizeof table / sizeof *table };

int calls_perform(const struct stopped_call *call, long *result)
{
    for (size_t i = 0; i < CALLS; i++)
        if (table[i].number == call->number)
            return table[i].otherwise && table[i].otherwise(call, result);
    return 0;
}

int calls_line(size_t line, long *number, enum condition *passes)
{
    if (line >= CALLS)
        return 0;
    *number = table[line].number;
    *passes = table[line].passes;
    return 1;
}

int calls_are_tracked(long number)
{
    for (size_t i = 0; i < CALLS; i++)
        if (table[i].number == number)
            return table[i].otherwise && table[i].otherwise != refuse;
    return number == SYS_exit_group;
}

/* Undoing */

static const struct original *find_original(int fd)
{
    for (uint32_t i = 0; i < FIXED->original_count; i++)
        if (FIXED->originals[i].fd == fd)
            return &FIXED->originals[i];
    return NULL;
}

static int undo_descriptor(int fd)
{
    const struct original *original = find_original(fd);
    if (!original) {
        call1(SYS_close, fd);
        return 1;
    }
    long flags = original->flags & FD_CLOEXEC ? O_CLOEXEC : 0;
    return call3(SYS_dup3, original->backup, fd, flags) == fd;
}

int calls_reset_status(void)
{
    for (uint32_t i = 0; i < FIXED->original_count; i++) {
        const struct original *original = &FIXED->originals[i];
        if (call3(SYS_fcntl, original->backup, F_SETFL, original->status) < 0)
            return 0;
    }
    return 1;
}

static int undo_descriptors(void)
{
    for (int word = 0; word < (FDS + 63) / 64; word++)
        for (uint64_t bits = RUN->touched[word]; bits; bits &= bits - 1)
            if (!undo_descriptor(64 * word + __builtin_ctzll(bits)))
                return 0;
    return !RUN->status_changed || calls_reset_status();
}

int calls_undo(void)
{
    for (uint64_t i = 0; i < RUN->own_count; i++)
        if (call2(SYS_munmap, (long)RUN->own[i].begin,
                  (long)(RUN->own[i].end - RUN->own[i].begin)) < 0)
            return 0;
    if (RUN->brk != FIXED->brk && call1(SYS_brk, (long)FIXED->brk) != (long)FIXED->brk)
        return 0;
    if (RUN->moved && call1(SYS_fchdir, FIXED->directory) != 0)
        return 0;
    return undo_descriptors();
}

#endif
