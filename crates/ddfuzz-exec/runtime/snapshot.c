/* Takes a snapshot of a crashing process. Everything that needs no system call is copied first:
 * registers and stack are saved even if the target has forbidden itself all system calls. */
#define _GNU_SOURCE
#include "snapshot.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__

enum {
    PAGE = 4096,
    ABOVE = 1 << 20, /* bytes of the stack from its pointer on, enough for recursions */
    BELOW = 64 << 10,
    AROUND = 256, /* bytes before and after the target of a register */
    DATA = 128 << 10,
    MESSAGE = 2048,
    MAPS = 384 << 10,
    FIRST_MAPS = 64 << 10
};

static struct snapshots *copies;
static uint64_t entry, device, inode;
static uintptr_t data_start, data_end;
static uintptr_t message; /* the C library's pointer to its abort message */
static char first_maps[FIRST_MAPS];
static size_t first_maps_length;

long raw_call(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

/* Copies up to the first byte that cannot be read; returns the number of bytes not copied.
 * Invariant: only the instruction at ddfuzz_copying may fault. */
uint64_t ddfuzz_copy_bytes(void *to, const void *from, uint64_t length)
    __attribute__((visibility("hidden")));
extern const char ddfuzz_copying[] __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".hidden ddfuzz_copy_bytes\n"
        ".hidden ddfuzz_copying\n"
        ".type ddfuzz_copy_bytes, @function\n"
        "ddfuzz_copy_bytes:\n"
        "  .cfi_startproc\n"
        "  mov %rdx, %rcx\n"
        "  cld\n"
        "ddfuzz_copying:\n"
        "  rep movsb\n"
        "  mov %rcx, %rax\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size ddfuzz_copy_bytes, . - ddfuzz_copy_bytes\n");

/* Continues after the faulting instruction by loading the registers; returning from the signal
 * would be a system call. */
__attribute__((noreturn)) static void leave_fault(const greg_t *registers)
{
    __asm__ volatile("mov %c[rbx](%%rax), %%rbx\n"
                     "mov %c[rbp](%%rax), %%rbp\n"
                     "mov %c[r12](%%rax), %%r12\n"
                     "mov %c[r13](%%rax), %%r13\n"
                     "mov %c[r14](%%rax), %%r14\n"
                     "mov %c[r15](%%rax), %%r15\n"
                     "mov %c[rsp](%%rax), %%rsp\n"
                     "mov %c[rcx](%%rax), %%rax\n"
                     "ret\n"
                     :
                     : "a"(registers), [rbx] "i"(REG_RBX * 8), [rbp] "i"(REG_RBP * 8),
                       [r12] "i"(REG_R12 * 8), [r13] "i"(REG_R13 * 8), [r14] "i"(REG_R14 * 8),
                       [r15] "i"(REG_R15 * 8), [rsp] "i"(REG_RSP * 8), [rcx] "i"(REG_RCX * 8)
                     : "memory");
    __builtin_unreachable();
}

void snapshot_guard(void *context)
{
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (registers[REG_RIP] == (greg_t)(uintptr_t)ddfuzz_copying)
        leave_fault(registers);
}

/* Offset of the next window in a slot. */
static uint64_t end_of(const struct snapshot_slot *slot)
{
    uint64_t count = slot->windows;
    uint64_t end = slot->maps_at + slot->maps_length;
    if (count > 0) {
        const struct snapshot_window *last = &slot->window[count - 1];
        if (last->at + last->length > end)
            end = last->at + last->length;
    }
    return end > SNAPSHOT_SLOT_HEAD ? end : SNAPSHOT_SLOT_HEAD;
}

/* Copies a range of memory as far as it can be read; returns its length. */
static uint64_t take(struct snapshot_slot *slot, uint64_t address, uint64_t length)
{
    uint64_t at = end_of(slot), count = slot->windows;
    if (count >= SNAPSHOT_WINDOWS || at >= SNAPSHOT_SLOT || address + length < address)
        return 0;
    if (length > SNAPSHOT_SLOT - at)
        length = SNAPSHOT_SLOT - at;
    length -= ddfuzz_copy_bytes((char *)slot + at, (const void *)(uintptr_t)address, length);
    if (length == 0)
        return 0;
    slot->window[count].address = address;
    slot->window[count].length = length;
    slot->window[count].at = at;
    __atomic_store_n(&slot->windows, count + 1, __ATOMIC_RELEASE);
    return length;
}

/* Copies the memory around an address; only its second page, if the first cannot be read. */
static void take_around(struct snapshot_slot *slot, uint64_t address)
{
    uint64_t start = address > AROUND ? address - AROUND : 0;
    if (address < PAGE || take(slot, start, 2 * AROUND))
        return;
    take(slot, address & ~(uint64_t)7, AROUND);
}

static void take_registers(struct snapshot_slot *slot, const greg_t *from)
{
    static const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
                                REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP, REG_EFL};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        slot->registers[i] = (uint64_t)from[order[i]];
    uint64_t thread;
    __asm__("mov %%fs:0, %0" : "=r"(thread)); /* the thread pointer refers to itself */
    slot->registers[18] = thread;
    slot->registers[19] = 0;
}

/* Copies the stack from its pointer on; after an overflow, from its first readable page. */
static void take_stack(struct snapshot_slot *slot, uint64_t sp)
{
    uint64_t at = sp;
    while (at - sp < ABOVE && !take(slot, at, ABOVE))
        at = (at + PAGE) & ~(uint64_t)(PAGE - 1);
}

/* Copies memory that unwinding and decoding the faulting instruction may need. */
static void take_memory(struct snapshot_slot *slot, const greg_t *registers)
{
    uint64_t sp = (uint64_t)registers[REG_RSP], pc = (uint64_t)registers[REG_RIP];
    take_stack(slot, sp);
    take(slot, pc, 64);
    for (int i = 0; i < 16; i++)
        if (slot->registers[i] != sp)
            take_around(slot, slot->registers[i]);
    if (data_start < data_end)
        take(slot, data_start, data_end - data_start < DATA ? data_end - data_start : DATA);
    if (message) {
        uint64_t text = 0;
        take(slot, message, sizeof text);
        ddfuzz_copy_bytes(&text, (const void *)message, sizeof text);
        if (text)
            take(slot, text, MESSAGE);
    }
}

/* Copies the used stack below the pointer, page by page from the top, because its end is
 * unknown. */
static void take_below(struct snapshot_slot *slot)
{
    uint64_t sp = slot->registers[7];
    uint64_t at = sp;
    while (at > PAGE && sp - at < BELOW) {
        uint64_t start = (at - 1) & ~(uint64_t)(PAGE - 1);
        if (take(slot, start, at - start) != at - start)
            break;
        at = start;
    }
}

static long read_maps(char *to, size_t room)
{
    static const char path[] = "/proc/self/maps";
    size_t length = 0;
    long fd = raw_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    while (length < room) {
        long got = raw_call(SYS_read, fd, (long)(to + length), (long)(room - length), 0);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    raw_call(SYS_close, fd, 0, 0, 0);
    return length > 0 ? (long)length : -1;
}

struct snapshot_slot *snapshot_begin(int signal, const siginfo_t *info, const void *context,
                                     int fatal)
{
    if (!copies)
        return NULL;
    const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t number = __atomic_fetch_add(&copies->taken, 1, __ATOMIC_RELAXED);
    char *at = (char *)copies + SNAPSHOT_HEAD + number % SNAPSHOT_SLOTS * SNAPSHOT_SLOT;
    struct snapshot_slot *slot = (struct snapshot_slot *)at;
    __atomic_store_n(&slot->number, 0, __ATOMIC_RELEASE);
    slot->fatal = fatal ? (uint32_t)signal : 0;
    slot->whole = 0;
    slot->windows = 0;
    slot->pid = slot->tid = 0;
    slot->signal = signal;
    slot->code = info->si_code;
    slot->address = (uint64_t)(uintptr_t)info->si_addr;
    slot->entry = entry;
    slot->device = device;
    slot->inode = inode;
    take_registers(slot, registers);
    /* The previous map, until the new one is read. */
    slot->maps_at = SNAPSHOT_SLOT_HEAD;
    slot->maps_length = first_maps_length;
    ddfuzz_copy_bytes((char *)slot + SNAPSHOT_SLOT_HEAD, first_maps, first_maps_length);
    __atomic_store_n(&slot->number, number + 1, __ATOMIC_RELEASE);
    take_memory(slot, registers);
    return slot;
}

void snapshot_dies_of(int signal)
{
    uint64_t taken = copies ? copies->taken : 0;
    if (taken > 0) {
        char *at = (char *)copies + SNAPSHOT_HEAD + (taken - 1) % SNAPSHOT_SLOTS * SNAPSHOT_SLOT;
        ((struct snapshot_slot *)at)->fatal = (uint32_t)signal;
    }
}

void snapshot_rest(struct snapshot_slot *slot)
{
    slot->pid = (int32_t)raw_call(SYS_getpid, 0, 0, 0, 0);
    slot->tid = (int32_t)raw_call(SYS_gettid, 0, 0, 0, 0);
    uint64_t at = end_of(slot);
    if (at < SNAPSHOT_SLOT) {
        uint64_t room = SNAPSHOT_SLOT - at < MAPS ? SNAPSHOT_SLOT - at : MAPS;
        long length = read_maps((char *)slot + at, room);
        if (length > 0) {
            slot->maps_length = (uint64_t)length;
            slot->maps_at = at;
        }
    }
    /* After the map was read: reading below the stack pointer makes the stack grow. */
    take_below(slot);
    __atomic_store_n(&slot->whole, 1, __ATOMIC_RELEASE);
}

/* Finds the writable data of the program, which comes first. */
static int find_data(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && header->p_flags & PF_W && !data_end) {
            data_start = info->dlpi_addr + header->p_vaddr;
            data_end = data_start + header->p_memsz;
        }
    }
    return 1;
}

int snapshot_prepare(void)
{
    struct stat facts;
    if (fstat(FD_SNAPSHOT, &facts) < 0
        || facts.st_size != SNAPSHOT_HEAD + SNAPSHOT_SLOTS * SNAPSHOT_SLOT)
        return 0; /* not ddfuzz's file */
    void *mapped = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                        FD_SNAPSHOT, 0);
    if (mapped == MAP_FAILED)
        return 0;
    struct snapshots *found = mapped;
    if (found->magic != SNAPSHOT_MAGIC) {
        munmap(mapped, (size_t)facts.st_size);
        return 0;
    }
    entry = getauxval(AT_ENTRY);
    if (stat("/proc/self/exe", &facts) == 0) {
        device = facts.st_dev;
        inode = facts.st_ino;
    }
    if (!found->ready) {
        found->target_device = device;
        found->target_inode = inode;
        found->ready = 1;
    }
    dl_iterate_phdr(find_data, NULL);
    message = (uintptr_t)dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
    long length = read_maps(first_maps, sizeof first_maps);
    first_maps_length = length > 0 ? (size_t)length : 0;
    copies = found;
    return 1;
}

#else

/* Snapshots are implemented for x86-64 only. */
long raw_call(long number, long a, long b, long c, long d)
{
    return syscall(number, a, b, c, d);
}

int snapshot_prepare(void)
{
    return 0;
}

#endif
