/* Preloaded into observed runs only: replaces functions that compare bytes, and the callbacks
 * that compilers put before comparisons (-fsanitize-coverage=trace-cmp), and records operands
 * that differ.
 *
 * A replaced function is called first with the same arguments, so that a comparison that crashes
 * does so here, too. Invariant: no byte is read that may not be readable. The real function has
 * read up to the first difference, and the rest of that page is readable as well. */
#define _GNU_SOURCE
#include "observe.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jump.h"

#define EXPORTED __attribute__((visibility("default")))
#define SITE ((uintptr_t)__builtin_return_address(0))

enum { PAGE = 4096 };

/* The memory file's mapping while this process is observed, else NULL. The pointer lies in a page
 * that a fork clears, so that children of the observed process are not observed. */
static struct observed **observed;
static struct observed *shared;

static int (*real_memcmp)(const void *, const void *, size_t);
static int (*real_strcmp)(const char *, const char *);
static int (*real_strncmp)(const char *, const char *, size_t);
static int (*real_strcasecmp)(const char *, const char *);
static int (*real_strncasecmp)(const char *, const char *, size_t);
static void *(*real_memmem)(const void *, size_t, const void *, size_t);
static char *(*real_strstr)(const char *, const char *);

static int is_observed(void)
{
    return observed && *observed;
}

/* Does not call memcpy, which sanitizers check: bytes after a text that the target compares may
 * not belong to it. `volatile` keeps the compiler from making a memcpy of the loop. */
static void copy(uint8_t *to, const volatile uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
}

static void record(uintptr_t site, const void *left, size_t left_size, const void *right,
                   size_t right_size)
{
    struct observed *to = *observed;
    if (!to)
        return;
    uint64_t number = __atomic_fetch_add(&to->taken, 1, __ATOMIC_RELAXED);
    struct pair *pair = &to->pairs[number % PAIRS];
    __atomic_store_n(&pair->seq, 0, __ATOMIC_RELEASE);
    pair->site = site;
    pair->sizes[0] = left_size;
    pair->sizes[1] = right_size;
    copy(pair->operands[0], left, left_size);
    copy(pair->operands[1], right, right_size);
    __atomic_store_n(&pair->seq, number + 1, __ATOMIC_RELEASE);
}

/* Number of bytes at `at` that can be read, at most `most`, where `known` bytes were read. */
static size_t reach(const uint8_t *at, size_t known, size_t most)
{
    uintptr_t last = (uintptr_t)at + (known ? known - 1 : 0);
    size_t size = (last | (PAGE - 1)) + 1 - (uintptr_t)at;
    size = size < most ? size : most;
    return size < OPERAND ? size : OPERAND;
}

/* Records two different blocks; `most` is the length of the comparison. */
static void record_blocks(uintptr_t site, const uint8_t *left, const uint8_t *right, size_t most)
{
    size_t same = 0;
    while (same < most && left[same] == right[same])
        same++;
    if (same == most)
        return;
    size_t start = same < OPERAND ? 0 : same;
    size_t left_size = reach(left + start, same - start + 1, most - start);
    size_t right_size = reach(right + start, same - start + 1, most - start);
    size_t size = left_size < right_size ? left_size : right_size;
    record(site, left + start, size, right + start, size);
}

static size_t text_size(const char *text, size_t most)
{
    size_t size = 0;
    while (size < most && text[size])
        size++;
    return size;
}

/* Records two different texts, which end at a NUL. */
static void record_texts(uintptr_t site, const char *left, const char *right, size_t most, int folds)
{
    size_t same = 0;
    for (; same < most && left[same]; same++) {
        int l = (unsigned char)left[same], r = (unsigned char)right[same];
        if (l != r && !(folds && tolower(l) == tolower(r)))
            break;
    }
    if (same == most)
        return;
    size_t start = same < OPERAND ? 0 : same, rest = most - start;
    size_t left_room = reach((const uint8_t *)left + start, same - start + 1, rest);
    size_t right_room = reach((const uint8_t *)right + start, same - start + 1, rest);
    record(site, left + start, text_size(left + start, left_room), right + start,
           text_size(right + start, right_room));
}

/* Used before this library is initialized, and without a real function. */
static int compare_blocks(const uint8_t *left, const uint8_t *right, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (left[i] != right[i])
            return left[i] - right[i];
    return 0;
}

static int compare_texts(const char *left, const char *right, size_t most, int folds)
{
    for (size_t i = 0; i < most; i++) {
        int l = (unsigned char)left[i], r = (unsigned char)right[i];
        if (folds)
            l = tolower(l), r = tolower(r);
        if (l != r || !l)
            return l - r;
    }
    return 0;
}

static int memcmp_at(uintptr_t site, const void *left, const void *right, size_t size)
{
    int result = real_memcmp ? real_memcmp(left, right, size) : compare_blocks(left, right, size);
    if (result && is_observed())
        record_blocks(site, left, right, size);
    return result;
}

EXPORTED int memcmp(const void *left, const void *right, size_t size)
{
    return memcmp_at(SITE, left, right, size);
}

EXPORTED int bcmp(const void *left, const void *right, size_t size)
{
    return memcmp_at(SITE, left, right, size);
}

EXPORTED int strcmp(const char *left, const char *right)
{
    int result = real_strcmp ? real_strcmp(left, right) : compare_texts(left, right, SIZE_MAX, 0);
    if (result && is_observed())
        record_texts(SITE, left, right, SIZE_MAX, 0);
    return result;
}

EXPORTED int strncmp(const char *left, const char *right, size_t most)
{
    int result = real_strncmp ? real_strncmp(left, right, most)
                              : compare_texts(left, right, most, 0);
    if (result && is_observed())
        record_texts(SITE, left, right, most, 0);
    return result;
}

EXPORTED int strcasecmp(const char *left, const char *right)
{
    int result = real_strcasecmp ? real_strcasecmp(left, right)
                                 : compare_texts(left, right, SIZE_MAX, 1);
    if (result && is_observed())
        record_texts(SITE, left, right, SIZE_MAX, 1);
    return result;
}

EXPORTED int strncasecmp(const char *left, const char *right, size_t most)
{
    int result = real_strncasecmp ? real_strncasecmp(left, right, most)
                                  : compare_texts(left, right, most, 1);
    if (result && is_observed())
        record_texts(SITE, left, right, most, 1);
    return result;
}

/* The missing text is one operand; the beginning of the searched text is the other. */
EXPORTED void *memmem(const void *text, size_t size, const void *wanted, size_t length)
{
    if (!real_memmem) {
        for (size_t at = 0; length <= size && at <= size - length; at++)
            if (compare_blocks((const uint8_t *)text + at, wanted, length) == 0)
                return (uint8_t *)text + at;
        return NULL;
    }
    void *found = real_memmem(text, size, wanted, length);
    if (!found && length && size >= length && is_observed())
        record(SITE, text, reach(text, 1, length), wanted, reach(wanted, 1, length));
    return found;
}

EXPORTED char *strstr(const char *text, const char *wanted)
{
    size_t length = text_size(wanted, SIZE_MAX);
    if (!real_strstr) {
        for (;; text++) {
            if (compare_texts(text, wanted, length, 0) == 0)
                return (char *)text;
            if (!*text)
                return NULL;
        }
    }
    char *found = real_strstr(text, wanted);
    if (!found && is_observed()) {
        size_t size = text_size(text, length < OPERAND ? length : OPERAND);
        record(SITE, text, size, wanted, length < OPERAND ? length : OPERAND);
    }
    return found;
}

static void record_numbers(uintptr_t site, uint64_t left, uint64_t right, size_t size)
{
    /* Numbers are little-endian on all supported processors. */
    if (left != right && is_observed())
        record(site, &left, size, &right, size);
}

/* Each callback has an internal name beside the exported one, which may refer to the program's
 * definition; a jump from there must not lead back. */
#define CALLBACK(own, exported, type)                                                              \
    static void own(type left, type right)                                                         \
    {                                                                                              \
        record_numbers(SITE, left, right, sizeof left);                                            \
    }                                                                                              \
    EXPORTED void exported(type left, type right) __attribute__((alias(#own)));

CALLBACK(on_cmp1, __sanitizer_cov_trace_cmp1, uint8_t)
CALLBACK(on_cmp2, __sanitizer_cov_trace_cmp2, uint16_t)
CALLBACK(on_cmp4, __sanitizer_cov_trace_cmp4, uint32_t)
CALLBACK(on_cmp8, __sanitizer_cov_trace_cmp8, uint64_t)
CALLBACK(on_const1, __sanitizer_cov_trace_const_cmp1, uint8_t)
CALLBACK(on_const2, __sanitizer_cov_trace_const_cmp2, uint16_t)
CALLBACK(on_const4, __sanitizer_cov_trace_const_cmp4, uint32_t)
CALLBACK(on_const8, __sanitizer_cov_trace_const_cmp8, uint64_t)

/* maximum number of recorded cases of one switch */
enum { CASES = 16 };

static void on_switch(uint64_t value, const uint64_t *cases)
{
    uint64_t count = cases[0], size = cases[1] / 8;
    if (!is_observed() || (size != 1 && size != 2 && size != 4 && size != 8))
        return;
    for (uint64_t i = 0; i < count; i++)
        if (cases[2 + i] == value)
            return;
    for (uint64_t i = 0; i < count && i < CASES; i++)
        record_numbers(SITE, value, cases[2 + i], size);
}

EXPORTED void __sanitizer_cov_trace_switch(uint64_t value, const uint64_t *cases)
    __attribute__((alias("on_switch")));

/* Signatures of <sanitizer/common_interface_defs.h>: the call site comes first, and the result
 * last. */
static void on_memcmp(void *site, const void *left, const void *right, size_t size, int result)
{
    if (result && is_observed())
        record_blocks((uintptr_t)site, left, right, size);
}

static void on_strncmp(void *site, const char *left, const char *right, size_t most, int result)
{
    if (result && is_observed())
        record_texts((uintptr_t)site, left, right, most, 0);
}

static void on_strcmp(void *site, const char *left, const char *right, int result)
{
    on_strncmp(site, left, right, SIZE_MAX, result);
}

static void on_strncasecmp(void *site, const char *left, const char *right, size_t most,
                           int result)
{
    if (result && is_observed())
        record_texts((uintptr_t)site, left, right, most, 1);
}

static void on_strcasecmp(void *site, const char *left, const char *right, int result)
{
    on_strncasecmp(site, left, right, SIZE_MAX, result);
}

/* Records a search that found nothing. */
static void not_found(uintptr_t site, const void *text, size_t size, const void *wanted,
                      size_t length)
{
    if (length && size >= length && is_observed())
        record(site, text, reach(text, 1, length), wanted, reach(wanted, 1, length));
}

static void on_memmem(void *site, const void *text, size_t size, const void *wanted,
                      size_t length, void *result)
{
    if (!result)
        not_found((uintptr_t)site, text, size, wanted, length);
}

static void on_strstr(void *site, const char *text, const char *wanted, char *result)
{
    if (!result)
        not_found((uintptr_t)site, text, text_size(text, OPERAND), wanted,
                  text_size(wanted, OPERAND));
}

static const uintptr_t callbacks[HOOK_KINDS] = {
    [HOOK_CMP1] = (uintptr_t)on_cmp1,     [HOOK_CMP2] = (uintptr_t)on_cmp2,
    [HOOK_CMP4] = (uintptr_t)on_cmp4,     [HOOK_CMP8] = (uintptr_t)on_cmp8,
    [HOOK_CONST1] = (uintptr_t)on_const1, [HOOK_CONST2] = (uintptr_t)on_const2,
    [HOOK_CONST4] = (uintptr_t)on_const4, [HOOK_CONST8] = (uintptr_t)on_const8,
    [HOOK_SWITCH] = (uintptr_t)on_switch, [HOOK_MEMCMP] = (uintptr_t)on_memcmp,
    [HOOK_STRNCMP] = (uintptr_t)on_strncmp, [HOOK_STRCMP] = (uintptr_t)on_strcmp,
    [HOOK_STRNCASECMP] = (uintptr_t)on_strncasecmp,
    [HOOK_STRCASECMP] = (uintptr_t)on_strcasecmp, [HOOK_MEMMEM] = (uintptr_t)on_memmem,
    [HOOK_STRSTR] = (uintptr_t)on_strstr, [HOOK_STRCASESTR] = (uintptr_t)on_strstr,
};

/* The next definition of a function that this library hides. */
static void find(void *pointer, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(pointer, &found, sizeof found); /* ISO C has no conversion between the two */
}

/* Maps the memory file, if its descriptor is open. */
static struct observed *map_observed(void)
{
    struct stat facts;
    if (fstat(FD_OBSERVED, &facts) < 0 || facts.st_size != sizeof(struct observed))
        return NULL;
    void *at = mmap(NULL, sizeof(struct observed), PROT_READ | PROT_WRITE, MAP_SHARED, FD_OBSERVED,
                    0);
    close(FD_OBSERVED); /* the target must not see it */
    struct observed *mapped = at;
    if (at == MAP_FAILED || mapped->magic != OBSERVED_MAGIC || mapped->version != OBSERVED_VERSION)
        return NULL;
    return mapped;
}

void ddfuzz_observe(int on)
{
    if (observed)
        *observed = on ? shared : NULL;
}

__attribute__((constructor)) static void begin(void)
{
    find(&real_memcmp, "memcmp");
    find(&real_strcmp, "strcmp");
    find(&real_strncmp, "strncmp");
    find(&real_strcasecmp, "strcasecmp");
    find(&real_strncasecmp, "strncasecmp");
    find(&real_memmem, "memmem");
    find(&real_strstr, "strstr");
    struct observed *mapped = map_observed();
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!mapped || page == MAP_FAILED)
        return;
    madvise(page, PAGE, MADV_WIPEONFORK);
    size_t count = mapped->hook_count < HOOKS ? (size_t)mapped->hook_count : HOOKS;
    for (size_t i = 0; i < count; i++)
        if (mapped->hooks[i].kind < HOOK_KINDS)
            jump_from(mapped->hooks[i].address, callbacks[mapped->hooks[i].kind]);
    observed = page;
    *observed = shared = mapped;
}
