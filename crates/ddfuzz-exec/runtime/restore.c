/* The runner: runs the program on from the fork point, once for each input, and puts it back.
 *
 * A run begins by the return from a signal handler whose frame is a copy of the program at the
 * fork point: registers, floating point and mask. It ends in a handler again: at a system call
 * that the filter has stopped (SIGSYS), or in a crash. From there the runner puts everything back
 * and begins the next run; no handler ever returns into a run that has ended.
 *
 * Invariants:
 *   - a result of the runner is an exit. A run that crashes, or makes a call that cannot be undone,
 *     is refused: a fork makes it again, from the beginning. Of a runner that dies, no result counts
 *   - signals of the program are not delivered, and the runner's are never blocked: mask, actions
 *     and stack that the program sees are noted only (restore_calls.c)
 *   - the thread pointer may be the program's own when a handler runs: no thread-local memory
 *   - whatever cannot be put back ends the runner; the server forks another one */
#define _GNU_SOURCE
/* Where a call comes by a jump, nobody has saved the vector registers. */
#if defined(__x86_64__)
#pragma GCC target("general-regs-only")
#endif
#include "restore.h"

#if defined(__x86_64__) && defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <sys/mman.h>
#include <unistd.h>

#include "blocks.h"
#include "restore_state.h"
#include "serve.h"

enum { SET_GS = 0x1001, SET_FS = 0x1002, GET_FS = 0x1003, GET_GS = 0x1004 }; /* of arch_prctl */
enum { SIGNAL_BY_FILTER = 1 /* si_code SYS_SECCOMP */ };

/* Continues from a signal frame: its context lies at `context`. */
_Noreturn void restore_continue(const ucontext_t *context);
__asm__(".text\n"
        ".hidden restore_continue, restore_on_stack\n"
        ".global restore_continue, restore_on_stack\n"
        "restore_on_stack:\n"
        "    mov %rdi, %rsp\n"
        "    call *%rsi\n"
        "    hlt\n"
        "restore_continue:\n"
        "    mov %rdi, %rsp\n"
        "    jmp defer_return\n");

/* Ends the runner. The server sees it, and no result of the run counts. */
static _Noreturn void give_up(void)
{
    for (;;)
        call2(SYS_kill, call1(SYS_getpid, 0), SIGKILL);
}

void run_write_whole(int fd, const void *bytes, size_t length)
{
    if (call3(SYS_write, fd, (long)bytes, (long)length) != (long)length)
        call1(SYS_exit_group, 0); /* the server or ddfuzz is gone */
}

static void write_page(const void *bytes, size_t length, size_t at)
{
    if (call4(SYS_pwrite64, FD_PAGE, (long)bytes, (long)length, (long)at) != (long)length)
        give_up();
}

void fixed_open(int on)
{
    long protection = on ? PROT_READ | PROT_WRITE : PROT_READ;
    call3(SYS_mprotect, (long)RESERVE + AT_FIXED, FIXED_SIZE, protection);
}

/* The writable state carries its checksum while the program runs. */

static uint64_t add_words(uint64_t sum, const void *from, const void *to)
{
    for (const uint64_t *word = from; word < (const uint64_t *)to; word++)
        sum = (sum ^ *word) * 0x9e3779b97f4a7c15u;
    return sum;
}

static uint64_t checksum(void)
{
    uint64_t sum = add_words(1, &RUN->request, RUN->own);
    if (RUN->own_count > MOST_OWN || RUN->lost_count > MOST_LOST)
        return ~RUN->checksum;
    sum = add_words(sum, RUN->own, RUN->own + RUN->own_count);
    sum = add_words(sum, RUN->lost, RUN->lost + RUN->lost_count);
    return RUN->signals_changed ? add_words(sum, &RUN->signals, &RUN->signals + 1) : sum;
}

static void seal(void)
{
    RUN->phase = RUNNING;
    RUN->checksum = checksum();
}

static void unseal(enum phase next)
{
    if (RUN->checksum != checksum() || RUN->phase != RUNNING)
        give_up();
    RUN->phase = next;
}

/* Inputs */

static const uint8_t *mapped_input(uint64_t offset, uint64_t length)
{
    uint64_t end = offset + length;
    int is_mapped = end >= offset && end <= MAPPED_INPUTS;
    return is_mapped ? (const uint8_t *)(RESERVE + AT_INPUTS + offset) : NULL;
}

/* Copies a large input between the files. */
static int copy_input(uint64_t offset, uint64_t length)
{
    uint8_t block[16 << 10];
    for (uint64_t done = 0; done < length;) {
        uint64_t left = length - done, want = left < sizeof block ? left : sizeof block;
        long got = call4(SYS_pread64, FD_BATCH, (long)block, (long)want, (long)(offset + done));
        if (got <= 0
            || call4(SYS_pwrite64, FD_WRITER, (long)block, got, (long)done) != got)
            return 0;
        done += (uint64_t)got;
    }
    return 1;
}

/* Sets the length of a file with an input. A longer input has made it longer. */
static int set_length(int fd, uint64_t length, uint64_t *before)
{
    int cut = *before > length;
    *before = length;
    return !cut || call2(SYS_ftruncate, fd, (long)length) == 0;
}

static int put_bytes(int fd, const uint8_t *bytes, uint64_t length, uint64_t *before)
{
    return call4(SYS_pwrite64, fd, (long)bytes, (long)length, 0) == (long)length
           && set_length(fd, length, before);
}

/* Writes an input into the two files from which the program reads it. */
static int put_two(const uint8_t *bytes, uint64_t length)
{
    uint64_t at = 0;
    while (at < length && bytes[at] != SEPARATOR)
        at++;
    uint64_t behind = at < length ? at + 1 : length;
    return put_bytes(FD_WRITER, bytes, at, &RUN->lengths[0])
           && put_bytes(FD_SECOND, bytes + behind, length - behind, &RUN->lengths[1]);
}

/* Writes an input to where the program reads it. */
static int put_input(const struct entry *entry)
{
    const uint8_t *bytes = mapped_input(entry->offset, entry->length);
    if (RUN->request.flags & REQUEST_TWO_FILES)
        return bytes && put_two(bytes, entry->length);
    if (bytes)
        return put_bytes(FD_WRITER, bytes, entry->length, &RUN->lengths[0]);
    return copy_input(entry->offset, entry->length)
           && set_length(FD_WRITER, entry->length, &RUN->lengths[0]);
}

static void read_entry(struct entry *entry)
{
    long at = ENTRIES + (long)(RUN->index * sizeof *entry);
    if (call4(SYS_pread64, FD_PAGE, (long)entry, sizeof *entry, at) != (long)sizeof *entry)
        give_up();
}

/* Outputs: /dev/null, or what captures them. */

static void capture(uint64_t on)
{
    if (RUN->captured == on)
        return;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        int at = fd - STDOUT_FILENO, from = on ? FD_CAPTURES + at : FIXED->outputs[at];
        if (call3(SYS_dup3, from, fd, 0) < 0)
            give_up();
        for (uint32_t i = 0; i < FIXED->original_count; i++)
            if (FIXED->originals[i].fd == fd
                && call3(SYS_dup3, from, FIXED->originals[i].backup, O_CLOEXEC) < 0)
                give_up();
    }
    RUN->captured = on;
}

/* Runs */

static _Noreturn void begin_next(void);

/* The signal frame with which a run begins. */
struct frame {
    ucontext_t context;
    unsigned char fpu[FPU_SIZE] __attribute__((aligned(64)));
};

/* A fork that has read the program's files has moved the offsets that all share. */
static void set_offsets(void)
{
    for (uint32_t i = 0; i < FIXED->original_count; i++) {
        const struct original *original = &FIXED->originals[i];
        if (original->offset >= 0
            && call3(SYS_lseek, original->backup, original->offset, SEEK_SET) < 0)
            give_up();
    }
}

/* Begins a run: the program continues at the fork point. */
static _Noreturn void continue_program(void)
{
    struct frame *frame = (struct frame *)(RESERVE + AT_FRAME);
    copy_bytes(&frame->context, &FIXED->context, sizeof frame->context);
    copy_bytes(frame->fpu, FIXED->fpu, FIXED->fpu_size);
    frame->context.uc_mcontext.fpregs = (fpregset_t)frame->fpu;
    set_offsets();
    seal();
    restore_continue(&frame->context);
}

static void refuse_run(uint32_t reason)
{
    struct runner_message message = {
        RUN->request.seq + RUN->index,
        reason,
        (RUN->request.flags & REQUEST_CAPTURED) != 0,
    };
    RUN->request.count = 0;
    run_write_whole(FD_REFUSALS, &message, sizeof message);
}

static void answer(int32_t status)
{
    struct reply reply = {RUN->request.seq + RUN->index, status, 0, 0};
    RUN->request.count = 0;
    run_write_whole(FD_REPLY, &reply, sizeof reply);
    write_page(&reply.seq, sizeof reply.seq, offsetof(struct page, ended));
}

static int read_request(void)
{
    char *at = (char *)&RUN->request;
    for (long left = sizeof RUN->request; left > 0;) {
        long got = call3(SYS_read, FD_REQUEST, (long)at, left);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            return 0;
        at += got;
        left -= got;
    }
    return 1;
}

/* The next request of ddfuzz. */
static void take_request(void)
{
    static const struct {
        int32_t exec_errno, forked, crashed;
    } nothing = {0, 0, 0};
    if (!read_request())
        call1(SYS_exit_group, 0); /* ddfuzz is gone */
    RUN->index = 0;
    RUN->lengths[0] = RUN->lengths[1] = UINT64_MAX; /* a fork may have changed the files since */
    if (RUN->request.count > MOST_INPUTS)
        RUN->request.count = MOST_INPUTS;
    write_page(&nothing, sizeof nothing, offsetof(struct page, exec_errno));
    uint32_t none = 0;
    write_page(&none, sizeof none, offsetof(struct page, refused));
    capture((RUN->request.flags & REQUEST_CAPTURED) != 0);
    if (!calls_reset_status()) /* of the files to which the outputs lead now */
        give_up();
}

/* Begins the next run of the request, or of the next request. */
static _Noreturn void begin_next(void)
{
    for (;;) {
        struct entry entry;
        if (RUN->request.count == 0)
            take_request();
        uint64_t seq = RUN->request.seq + RUN->index;
        write_page(&seq, sizeof seq, offsetof(struct page, started));
        if (!(RUN->request.flags & REQUEST_IN_PLACE)) {
            read_entry(&entry);
            if (!put_input(&entry))
                give_up();
        }
        if (!(RUN->request.flags & REQUEST_FORKED))
            continue_program();
        refuse_run(REFUSED_ASKED);
    }
}

/* Reads the bases of the segments FS, which is the thread pointer, and GS. */
void run_get_bases(uintptr_t *fs, uintptr_t *gs)
{
    if (FIXED->reads_bases) {
        __asm__ volatile("rdfsbase %0" : "=r"(*fs));
        __asm__ volatile("rdgsbase %0" : "=r"(*gs));
        return;
    }
    call2(SYS_arch_prctl, GET_FS, (long)fs);
    call2(SYS_arch_prctl, GET_GS, (long)gs);
}

static void put_bases_back(void)
{
    uintptr_t fs = 0, gs = 0;
    run_get_bases(&fs, &gs);
    if (fs != FIXED->fs)
        call2(SYS_arch_prctl, SET_FS, (long)FIXED->fs);
    if (gs != FIXED->gs)
        call2(SYS_arch_prctl, SET_GS, (long)FIXED->gs);
}

static void put_back(void)
{
    put_bases_back();
    if (!calls_undo() || !memory_restore())
        give_up();
    RUN->signals_changed = 0;
    RUN->mode_mask = FIXED->mode_mask;
    RUN->brk = FIXED->brk;
    RUN->own_count = 0;
    RUN->lost_count = 0;
    RUN->unmapped_count = 0;
    RUN->status_changed = 0;
    RUN->discarded = 0;
    RUN->moved = 0;
    for (size_t i = 0; i < sizeof RUN->touched / sizeof *RUN->touched; i++)
        RUN->touched[i] = 0;
}

/* Ends a run that has exited. */
static _Noreturn void finish(int32_t status)
{
    put_back();
    size_t at = ENTRIES + RUN->index * sizeof(struct entry) + offsetof(struct entry, status);
    write_page(&status, sizeof status, at);
    if (RUN->index + 1 >= RUN->request.count)
        answer(status);
    else
        RUN->index++;
    begin_next();
}

/* Ends a run that a fork must make. */
static _Noreturn void refuse(uint32_t reason)
{
    put_back();
    refuse_run(reason);
    begin_next();
}

void run_on_call(int signal, siginfo_t *info, void *data)
{
    (void)signal;
    unseal(IN_CALL);
    greg_t *registers = ((ucontext_t *)data)->uc_mcontext.gregs;
    const struct stopped_call call = {
        info->si_syscall,
        {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10],
         registers[REG_R8], registers[REG_R9]},
    };
    if (info->si_code != SIGNAL_BY_FILTER)
        refuse(REFUSED_CRASH);
    if (info->si_arch != AUDIT_ARCH_X86_64)
        refuse(REFUSED_ARCH);
    if (call.number == SYS_exit_group)
        finish((int32_t)(call.a[0] & 0xff) << 8);
    long result;
    if (!calls_perform(&call, &result))
        refuse((uint32_t)call.number);
    registers[REG_RAX] = result;
    sites_rewrite((uintptr_t)registers[REG_RIP]);
    seal();
}

/* A call that came by a jump: the number of its site, which becomes the address to return to, and
 * the arguments. */
struct jumped_call {
    uint64_t site;
    long a[6];
};

long restore_jumped(struct jumped_call *jumped);
long restore_jumped(struct jumped_call *jumped)
{
    unseal(IN_CALL);
    const struct patched_site *site = &FIXED->patched[jumped->site];
    long *a = jumped->a;
    if (site->is_open)
        a[0] = (unsigned)AT_FDCWD;
    const struct stopped_call call = {site->number, {a[0], a[1], a[2], a[3], a[4], a[5]}};
    if (call.number == SYS_exit_group)
        finish((int32_t)(a[0] & 0xff) << 8);
    long result;
    if (!calls_perform(&call, &result))
        refuse((uint32_t)call.number);
    jumped->site = site->after;
    seal();
    return result;
}

/* A crash of the program, or of a handler that reads what the program has given it. */
void run_on_crash(int signal, siginfo_t *info, void *data)
{
    if (signal == SIGTRAP && info->si_code == SI_KERNEL && RUN->phase == RUNNING
        && blocks_hit(data, RUN->request.seq + RUN->index))
        return;
    if (RUN->phase == RUNNING)
        unseal(PUTTING_BACK);
    else if (RUN->phase != IN_CALL)
        give_up();
    refuse(REFUSED_CRASH);
}

/* On the stack of the handlers. */
void run_serve(void)
{
    uintptr_t data = FIXED->data_begin;
    call3(SYS_mprotect, (long)data, (long)(FIXED->data_end - data), PROT_READ);
    sites_rewrite_exit();
    sites_rewrite_write();
    RUN->faults = UINT64_MAX;
    fixed_open(0);
    setup_tell(UNFIT_NONE);
    begin_next();
}

#endif
