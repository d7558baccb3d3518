/* The program's writable memory: its copy, and putting it back after a run.
 *
 * Where the kernel can (Linux 6.7), userfaultfd in its asynchronous mode of write protection notes
 * which pages a run writes, also by the kernel, and costs one fault for each page and run. Pages
 * that are written again and again stay writable and are copied after each run, the hot pages: a run
 * that writes nothing else has no page fault, and then the kernel is not asked. Elsewhere all memory
 * is copied after each run.
 *
 * Invariants:
 *   - a page that is not listed as written is as at the fork point: it was protected when its
 *     content was that of the copy. Pages that were absent then are marked as protected, too
 *   - written pages are first listed, then copied back, then protected, so a page that
 *     is copied back is not protected at that time
 *   - the kernel counts each fault of a protected or absent page, also its own. So if the count is as
 *     it was when all pages but the hot ones were protected, they are as they were
 *   - the memory of this library, the reserve, and the 32 bytes that the kernel writes for
 *     restartable sequences are left out, by their addresses, since mappings may be merged */
#define _GNU_SOURCE
#include "restore.h"

#if defined(__x86_64__) && defined(__linux__)
#include "blocks.h"
#include "restore_state.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "serve.h"
#include "wait_wrappers.h"

/* From linux/userfaultfd.h and linux/fs.h, which some systems have without these parts. */
struct uffd_api {
    uint64_t api, features, ioctls;
};
struct uffd_register {
    uint64_t begin, length, mode, ioctls;
};
struct uffd_protect {
    uint64_t begin, length, mode;
};
struct page_region {
    uint64_t begin, end, categories;
};
struct page_scan {
    uint64_t size, flags, begin, end, walk_end, regions, region_count, most_pages, inverted, mask,
        any_of, returned;
};
enum {
    UFFD_USER_ONLY = 1,
    UFFD_WRITE_PROTECTION = 1,
    UFFD_MODE_WP = 2,
    UFFD_WP_UNPOPULATED = 1 << 13,
    UFFD_WP_ASYNC = 1 << 15,
    PAGE_MAY_BE_PROTECTED = 1 << 0,
    PAGE_WRITTEN = 1 << 1,
};
#define UFFD_API 0xc018aa3ful
#define UFFD_REGISTER 0xc020aa00ul
#define UFFD_WRITEPROTECT 0xc018aa06ul
#define PAGES_SCAN 0xc0606610ul
#ifndef SYS_userfaultfd
#define SYS_userfaultfd 323
#endif

enum {
    STACK_ROOM = 64 << 10, /* bytes below the stack that are mapped ahead */
    RSEQ_SIZE = 32,
    WRITTEN_OFTEN = 8, /* of COUNTED_RUNS runs */
    COUNTED_RUNS = 64,
    FAULTS_OF_THREAD = 1, /* RUSAGE_THREAD */
};

/* For each copied page: how often it was written since the count began. A wrong number costs time and
 * nothing else. */
#define PAGES ((unsigned char *)(RESERVE + AT_PAGES))

static uintptr_t round_down(uintptr_t address)
{
    return address & ~(uintptr_t)(PAGE - 1);
}

static uintptr_t round_up(uintptr_t address)
{
    return round_down(address + PAGE - 1);
}

/* A line of /proc/self/maps. */
struct mapping {
    uintptr_t begin, end;
    int writable, shared, of_file, executable, is_stack, is_heap, is_libc_text;
};

static const char *hexadecimal(const char *at, uintptr_t *number)
{
    for (*number = 0;; at++) {
        int digit = *at >= '0' && *at <= '9'   ? *at - '0'
                    : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
                                               : -1;
        if (digit < 0)
            return at;
        *number = *number << 4 | (unsigned)digit;
    }
}

static const char *next_field(const char *at)
{
    while (*at && *at != ' ')
        at++;
    while (*at == ' ')
        at++;
    return at;
}

static struct mapping parse(const char *line)
{
    struct mapping mapping;
    const char *at = hexadecimal(line, &mapping.begin);
    at = hexadecimal(at + (*at == '-'), &mapping.end);
    at = next_field(at);
    mapping.writable = at[0] == 'r' || at[0] == '-' ? at[1] == 'w' : 0;
    mapping.shared = mapping.writable && at[3] == 's';
    const char *inode = next_field(next_field(next_field(at)));
    mapping.of_file = *inode != '0';
    const char *path = next_field(inode), *name = strrchr(path, '/');
    mapping.executable = at[2] == 'x';
    mapping.is_stack = strncmp(path, "[stack]", 7) == 0;
    mapping.is_heap = strncmp(path, "[heap]", 6) == 0;
    mapping.is_libc_text = mapping.executable && !mapping.writable && name
                           && strcmp(name, "/libc.so.6") == 0;
    return mapping;
}

/* Finds the writable part of this library. */
static void find_own_data(void)
{
    extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
    uintptr_t base = (uintptr_t)&__ehdr_start;
    const Elf64_Phdr *part = (const Elf64_Phdr *)(base + __ehdr_start.e_phoff);
    for (int i = 0; i < __ehdr_start.e_phnum; i++, part++) {
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        FIXED->data_begin = round_down(base + part->p_vaddr);
        FIXED->data_end = round_up(base + part->p_vaddr + part->p_memsz);
    }
}

static int is_zero(const void *page)
{
    const uint64_t *word = page;
    uint64_t any = 0;
    for (size_t i = 0; i < PAGE / sizeof *word; i++)
        any |= word[i];
    return any == 0;
}

/* Whether the page at `address` has no memory, by the entry of /proc/self/pagemap. */
static int is_absent(int pagemap, uintptr_t address)
{
    uint64_t entry;
    long got = call4(SYS_pread64, pagemap, (long)&entry, sizeof entry, (long)(address / PAGE * 8));
    return got == (long)sizeof entry && entry >> 62 == 0;
}

/* For each copied page: whether its copy is not zero, and whether it is hot. Read-only while the
 * program runs. */
#define FLAGS ((unsigned char *)(RESERVE + AT_PAGE_FLAGS))
enum { FILLED = 1, HOT = 2 };

static size_t page_number(const struct kept_range *range, uintptr_t at)
{
    return (range->copy + (at - range->begin) - RESERVE - AT_COPIES) / PAGE;
}

/* Copies the pages of a range that are not zero: the copy begins as zeros. */
static void copy_range(const struct kept_range *range, int pagemap, int of_file)
{
    for (uintptr_t at = range->begin; at < range->end; at += PAGE) {
        if ((!of_file && is_absent(pagemap, at)) || is_zero((const void *)at))
            continue;
        copy_bytes((void *)(range->copy + at - range->begin), (const void *)at, PAGE);
        FLAGS[page_number(range, at)] = FILLED;
    }
}

/* Where the next copy lies. */
static uintptr_t copies_end(void)
{
    if (FIXED->range_count == 0)
        return RESERVE + AT_COPIES;
    const struct kept_range *last = &FIXED->ranges[FIXED->range_count - 1];
    return last->copy + (last->end - last->begin);
}

/* Adds [begin, end) of a mapping, or what will belong to it. Returns 0 if it does not fit. */
static int keep(uintptr_t begin, uintptr_t end, int pagemap, const struct mapping *of)
{
    if (begin >= end)
        return 1;
    uintptr_t copy = copies_end();
    if (FIXED->range_count == MOST_RANGES
        || copy + (end - begin) > RESERVE + AT_COPIES + MOST_COPIED)
        return 0;
    struct kept_range *range = &FIXED->ranges[FIXED->range_count++];
    int protection = PROT_READ | PROT_WRITE | (of->executable ? PROT_EXEC : 0);
    int is_plain = !of->of_file && !of->is_stack && !of->is_heap;
    *range = (struct kept_range){begin, end, copy, protection, is_plain};
    if (begin >= of->begin) /* else it is not mapped yet */
        copy_range(range, pagemap, of->of_file);
    return 1;
}

/* Keeps a private writable mapping without this library's part of it. */
static int keep_mapping(const struct mapping *mapping, uintptr_t previous_end, int pagemap)
{
    uintptr_t begin = mapping->begin, end = mapping->end;
    uintptr_t own = FIXED->data_begin, own_end = FIXED->data_end;
    if (mapping->is_stack && begin - previous_end > 64u * STACK_ROOM) {
        FIXED->below_stack = (struct span){previous_end, begin - STACK_ROOM};
        if (!keep(begin - STACK_ROOM, begin, pagemap, mapping))
            return 0;
    }
    if (own >= end || own_end <= begin)
        return keep(begin, end, pagemap, mapping);
    return keep(begin, own, pagemap, mapping) && keep(own_end, end, pagemap, mapping);
}

static int is_in_reserve(uintptr_t address)
{
    return address - RESERVE < RESERVE_SIZE;
}

static enum unfit keep_line(const char *line, uintptr_t *previous_end, int pagemap)
{
    struct mapping mapping = parse(line);
    uintptr_t before = *previous_end;
    *previous_end = mapping.end;
    if (mapping.is_libc_text)
        sites_find(mapping.begin, mapping.end);
    if (!mapping.writable || is_in_reserve(mapping.begin) || blocks_own(mapping.begin))
        return UNFIT_NONE;
    if (mapping.shared) {
        int ours = mapping.begin == (uintptr_t)serve_page
                   || mapping.begin == (uintptr_t)wait_wrappers_memory();
        return ours ? UNFIT_NONE : UNFIT_SHARED;
    }
    return keep_mapping(&mapping, before, pagemap) ? UNFIT_NONE : UNFIT_SIZE;
}

/* Reads all lines before any page is copied: that changes no mapping. */
static enum unfit keep_all(int maps, int pagemap)
{
    static char text[64 << 10];
    size_t length = 0;
    long got;
    while ((got = call3(SYS_read, maps, (long)(text + length), (long)(sizeof text - 1 - length))) > 0)
        length += (size_t)got;
    if (length == 0 || length == sizeof text - 1)
        return UNFIT_MEMORY;
    text[length] = 0;
    enum unfit unfit = UNFIT_NONE;
    uintptr_t previous_end = 0;
    for (char *line = text, *end; unfit == UNFIT_NONE && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        unfit = keep_line(line, &previous_end, pagemap);
    }
    return unfit;
}

enum unfit memory_copy(void)
{
    const long protection = PROT_READ | PROT_WRITE;
    const long flags = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    long at = RESERVE + AT_COPIES;
    const long own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    const long page_flags = RESERVE + AT_PAGE_FLAGS, pages = MOST_COPIED / PAGE;
    if (defer_call(SYS_mmap, at, MOST_COPIED, protection, flags, -1, 0) != at
        || defer_call(SYS_mmap, page_flags, pages, protection, own, -1, 0) != page_flags)
        return UNFIT_MEMORY;
    find_own_data();
    int maps = (int)call4(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY, 0);
    int pagemap = (int)call4(SYS_openat, AT_FDCWD, (long)"/proc/self/pagemap", O_RDONLY, 0);
    enum unfit unfit = maps < 0 ? UNFIT_MEMORY : keep_all(maps, pagemap);
    call1(SYS_close, maps);
    call1(SYS_close, pagemap);
    call3(SYS_mprotect, at, MOST_COPIED, PROT_READ);
    call3(SYS_mprotect, page_flags, pages, PROT_READ);
    return unfit;
}

size_t memory_size(void)
{
    return copies_end() - RESERVE - AT_COPIES;
}

static int protect(uintptr_t begin, uintptr_t end)
{
    struct uffd_protect wanted = {begin, end - begin, UFFD_WRITE_PROTECTION};
    return begin == end || call3(SYS_ioctl, FIXED->uffd, UFFD_WRITEPROTECT, (long)&wanted) == 0;
}

/* Registers and protects memory. */
static int watch(uintptr_t begin, uintptr_t end)
{
    struct uffd_register wanted = {begin, end - begin, UFFD_MODE_WP, 0};
    return call3(SYS_ioctl, FIXED->uffd, UFFD_REGISTER, (long)&wanted) == 0 && protect(begin, end);
}

/* Registers and protects all ranges; returns 0 if the kernel cannot. */
static int watch_all(void)
{
    struct uffd_api api = {0xaa, UFFD_WP_ASYNC | UFFD_WP_UNPOPULATED, 0};
    struct page_scan nothing = {.size = sizeof nothing, .begin = RESERVE, .end = RESERVE + PAGE};
    if (call3(SYS_ioctl, FIXED->uffd, UFFD_API, (long)&api) != 0
        || call3(SYS_ioctl, FIXED->pagemap, PAGES_SCAN, (long)&nothing) < 0)
        return 0;
    for (uint32_t i = 0; i < FIXED->range_count; i++)
        if (!watch(FIXED->ranges[i].begin, FIXED->ranges[i].end))
            return 0;
    return 1;
}

/* Moves a descriptor to one of the runner's numbers. */
static int move_up(long fd)
{
    if (fd < 0)
        return -1;
    long moved = call3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_BACKUPS);
    call1(SYS_close, fd);
    return moved < 0 ? -1 : (int)moved;
}

void memory_watch(void)
{
    if (FIXED->below_stack.end) /* a read lets the stack grow */
        (void)*(volatile const char *)FIXED->below_stack.end;
    FIXED->uffd = move_up(call1(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_ONLY));
    FIXED->pagemap =
        move_up(call4(SYS_openat, AT_FDCWD, (long)"/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0));
    if (FIXED->uffd >= 0 && FIXED->pagemap >= 0 && watch_all())
        return;
    call1(SYS_close, FIXED->uffd); /* ends the watch of all ranges */
    FIXED->uffd = -1;
}

/* Copies [begin, end) of a range back, but for the bytes of restartable sequences. */
static void put_back(const struct kept_range *range, uintptr_t begin, uintptr_t end)
{
    uintptr_t hole = FIXED->rseq;
    if (hole >= begin && hole < end) {
        put_back(range, begin, hole);
        begin = hole + RSEQ_SIZE;
    }
    const void *copy = (const void *)(range->copy + (begin - range->begin));
    copy_bytes((void *)begin, copy, end - begin);
}

static int continues(const struct hot_span *hot, uintptr_t page, uintptr_t copy)
{
    return hot->end == page && hot->copy + (page - hot->begin) == copy;
}

/* Adds a page to the hot ones; 0: there are too many. */
static int add_hot(const struct kept_range *range, uintptr_t page)
{
    uintptr_t copy = range->copy + (page - range->begin);
    const long pages = MOST_COPIED / PAGE;
    uint32_t at = 0;
    if (FIXED->hot_count == MOST_HOT)
        return 0;
    while (at < FIXED->hot_count && !continues(&FIXED->hot[at], page, copy))
        at++;
    fixed_open(1);
    call3(SYS_mprotect, RESERVE + AT_PAGE_FLAGS, pages, PROT_READ | PROT_WRITE);
    if (at == FIXED->hot_count)
        FIXED->hot[FIXED->hot_count++] = (struct hot_span){page, page, copy};
    FIXED->hot[at].end += PAGE;
    FLAGS[page_number(range, page)] |= HOT;
    call3(SYS_mprotect, RESERVE + AT_PAGE_FLAGS, pages, PROT_READ);
    fixed_open(0);
    return 1;
}

/* Counts that the pages were written, and protects those that are not hot. */
static int protect_rare(const struct kept_range *range, uintptr_t begin, uintptr_t end)
{
    size_t number = page_number(range, begin);
    uintptr_t rare = begin;
    for (uintptr_t at = begin; at < end; at += PAGE, number++) {
        int is_hot = FLAGS[number] & HOT;
        if (!is_hot && (++PAGES[number] < WRITTEN_OFTEN || !add_hot(range, at)))
            continue;
        if (!protect(rare, at))
            return 0;
        rare = at + PAGE;
    }
    return protect(rare, end);
}

static int put_back_region(const struct page_region *region)
{
    for (uint32_t i = 0; i < FIXED->range_count; i++) {
        const struct kept_range *range = &FIXED->ranges[i];
        uintptr_t begin = region->begin > range->begin ? region->begin : range->begin;
        uintptr_t end = region->end < range->end ? region->end : range->end;
        if (begin >= end)
            continue;
        put_back(range, begin, end);
        if (!protect_rare(range, begin, end))
            return 0;
    }
    return 1;
}

static void count_anew(void)
{
    for (size_t i = 0; i < memory_size() / PAGE; i++)
        PAGES[i] = 0;
}

static int restore_written(void)
{
    enum { REGIONS = 128 };
    struct page_region regions[REGIONS];
    struct page_scan scan = {
        .size = sizeof scan,
        .begin = FIXED->ranges[0].begin,
        .end = FIXED->ranges[FIXED->range_count - 1].end,
        .regions = (uintptr_t)regions,
        .region_count = REGIONS,
        .mask = PAGE_MAY_BE_PROTECTED | PAGE_WRITTEN,
        .returned = PAGE_WRITTEN,
    };
    while (scan.begin < scan.end) {
        long found = call3(SYS_ioctl, FIXED->pagemap, PAGES_SCAN, (long)&scan);
        if (found < 0)
            return 0;
        for (long i = 0; i < found; i++)
            if (!put_back_region(&regions[i]))
                return 0;
        scan.begin = scan.walk_end;
    }
    if (++RUN->runs % COUNTED_RUNS == 0)
        count_anew();
    return 1;
}

/* Unmaps what the stack has grown beyond the room below it. */
static int shrink_stack(void)
{
    unsigned char there;
    struct span below = FIXED->below_stack;
    if (!below.end || call3(SYS_mincore, (long)(below.end - PAGE), PAGE, (long)&there) < 0)
        return 1;
    return call2(SYS_munmap, (long)below.begin, (long)(below.end - below.begin)) == 0;
}

const struct kept_range *memory_plain(uintptr_t begin, uintptr_t length)
{
    for (uint32_t i = 0; i < FIXED->range_count; i++) {
        const struct kept_range *range = &FIXED->ranges[i];
        if (begin >= range->begin && begin < range->end && length <= range->end - begin)
            return range->is_plain ? range : NULL;
    }
    return NULL;
}

int memory_lose(uintptr_t begin, uintptr_t length)
{
    if (RUN->lost_count == MOST_LOST)
        return 0;
    RUN->lost[RUN->lost_count++] = (struct span){begin, begin + length};
    return call3(SYS_mprotect, (long)begin, (long)length, PROT_NONE) == 0;
}

int memory_unmap_lost(void)
{
    for (; RUN->unmapped_count < RUN->lost_count; RUN->unmapped_count++) {
        struct span lost = RUN->lost[RUN->unmapped_count];
        if (call2(SYS_munmap, (long)lost.begin, (long)(lost.end - lost.begin)) != 0)
            return 0;
    }
    return 1;
}

static int allow_again(const struct span *lost)
{
    const struct kept_range *range = memory_plain(lost->begin, lost->end - lost->begin);
    long length = (long)(lost->end - lost->begin);
    return range && call3(SYS_mprotect, (long)lost->begin, length, range->protection) == 0;
}

/* Maps a span of plain memory again. */
static int map_again(const struct span *lost)
{
    const struct kept_range *range = memory_plain(lost->begin, lost->end - lost->begin);
    const long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    long at = (long)lost->begin, length = (long)(lost->end - lost->begin);
    if (!range || defer_call(SYS_mmap, at, length, range->protection, flags, -1, 0) != at)
        return 0;
    for (uintptr_t page = lost->begin; page < lost->end; page += PAGE)
        if (FLAGS[page_number(range, page)] & FILLED)
            put_back(range, page, page + PAGE);
    return FIXED->uffd < 0 || watch(lost->begin, lost->end);
}

/* The number of page faults of this process so far. */
static uint64_t faults_so_far(void)
{
    struct rusage usage;
    if (call2(SYS_getrusage, FAULTS_OF_THREAD, (long)&usage) != 0)
        return UINT64_MAX;
    return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

/* Whether the run has changed nothing but hot pages. */
static int only_hot_pages(void)
{
    return FIXED->uffd >= 0 && RUN->unmapped_count == 0 && !RUN->discarded
           && RUN->faults != UINT64_MAX && faults_so_far() == RUN->faults;
}

static void put_back_hot(void)
{
    for (uint32_t i = 0; i < FIXED->hot_count; i++) {
        const struct hot_span *hot = &FIXED->hot[i];
        const struct kept_range range = {.begin = hot->begin, .end = hot->end, .copy = hot->copy};
        put_back(&range, range.begin, range.end);
    }
}

int memory_restore(void)
{
    for (uint64_t i = 0; i < RUN->lost_count; i++) {
        const struct span *lost = &RUN->lost[i];
        if (!(i < RUN->unmapped_count ? map_again(lost) : allow_again(lost)))
            return 0;
    }
    if (only_hot_pages()) {
        put_back_hot();
        return 1;
    }
    if (!shrink_stack())
        return 0;
    if (FIXED->uffd >= 0) {
        int restored = restore_written();
        RUN->faults = faults_so_far();
        return restored;
    }
    for (uint32_t i = 0; i < FIXED->range_count; i++)
        put_back(&FIXED->ranges[i], FIXED->ranges[i].begin, FIXED->ranges[i].end);
    return 1;
}

#endif
