#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "observe.h"
#include "disable_callbacks.h"
#include "serve.h"

/* Number of runs after which a child is replaced, which bounds the memory that it leaks. */
enum { RUNS_PER_CHILD = 20000 };

/* NULL if observe.c is not preloaded. */
#pragma weak ddfuzz_observe

/* Bytes of the input file that are mapped; larger inputs are read. */
enum { MAPPED_INPUT = 4 << 20 };

/* The memory that is shared with ddfuzz, and its size in bytes. */
static uint8_t *shared;
static size_t shared_size;
static const uint8_t *inputs;
static struct entry *entries;
static struct counters counters;

void loop_prepare(const struct entry_point *entry)
{
    struct stat facts;
    if (fstat(FD_PAGE, &facts) < 0 || facts.st_size < COUNTERS) {
        serve_hello(TROUBLE_SETUP, EINVAL);
        _exit(0);
    }
    size_t size = (size_t)facts.st_size;
    uint8_t *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, FD_PAGE, 0);
    void *file = mmap(NULL, MAPPED_INPUT, PROT_READ, MAP_SHARED, FD_INPUT, 0);
    if (page == MAP_FAILED || file == MAP_FAILED) {
        serve_hello(TROUBLE_SETUP, errno);
        _exit(0);
    }
    shared = page;
    shared_size = size;
    inputs = file;
    entries = (struct entry *)(page + ENTRIES);
    counters.at = entry->counters;
    counters.size = entry->counter_count;
    counters_share(&counters, page, size);
    serve_page->counters = counters.size ? (uintptr_t)counters.at : 0;
    /* The observing library's callbacks must stay, if it is preloaded. */
    if (!ddfuzz_observe)
        disable_callbacks(entry);
}

/* Ends a child whose run could not begin; the server replies. */
static void refuse(int error)
{
    serve_page->exec_errno = error;
    _exit(127);
}

static uint8_t *take_input(const struct entry *entry)
{
    uint8_t *input;
    uint64_t end = entry->offset + entry->length;
    if (end > MAPPED_INPUT || end < entry->offset) {
        int refused = entry_input(FD_INPUT, entry->offset, entry->length, &input);
        if (refused)
            refuse(refused);
        return input;
    }
    input = malloc(entry->length ? entry->length : 1);
    if (!input)
        refuse(ENOMEM);
    memcpy(input, inputs + entry->offset, entry->length);
    return input;
}

/* The CPU time of this process, in nanoseconds. */
static uint64_t cpu_time(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The lowest stack address that the program's instrumented code records, which is in the memory of
 * this thread; NULL if it records none. */
static uintptr_t *lowest_stack(const struct entry_point *point)
{
    uintptr_t thread = 0;
#ifdef __x86_64__
    __asm__("mov %%fs:0, %0" : "=r"(thread));
#endif
    return thread && point->lowest_stack ? (uintptr_t *)(thread - point->lowest_stack) : NULL;
}

/* Returns whether no earlier run had a stack of this depth (in bytes, in units of 16), and notes
 * that this one had. */
static int depth_is_novel(uint64_t depth)
{
    uint64_t unit = depth / 16 % (DEPTHS * 8);
    uint8_t *known = &serve_page->depths[unit / 8], bit = (uint8_t)(1u << unit % 8);
    int novel = !(*known & bit);
    *known |= bit;
    return novel;
}

/* Whether the last run reached a new counter range or depth, so that its counters are kept. */
static int is_novel(uint64_t stack_depth)
{
    int deep = stack_depth && depth_is_novel(stack_depth - 1);
    return counters_are_novel(&counters) || deep;
}

/* Runs one input and fills its entry. */
static void run(const struct entry_point *point, struct entry *entry, uint64_t wanted)
{
    uint8_t *input = take_input(entry);
    int counts = counters.size && wanted & (REQUEST_COUNTERS | REQUEST_NOVEL);
    int timed = counts && wanted & REQUEST_COUNTERS;
    uintptr_t *lowest = counts ? lowest_stack(point) : NULL;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (counts)
        counters_clear(&counters);
    if (lowest)
        *lowest = here;
    uint64_t began = timed ? cpu_time() : 0;
    int status = entry_call(point, input, entry->length) << 8;
    /* A measured time is at least 1 microsecond; 0 means not measured. */
    entry->cpu_us = timed ? (cpu_time() - began) / 1000 + 1 : 0;
    entry->stack_depth = lowest ? here - *lowest + 1 : 0;
    entry->slot = 0;
    if (counts && (wanted & REQUEST_COUNTERS || is_novel(entry->stack_depth)))
        entry->slot = counters_keep(&counters);
    entry->status = status;
    free(input);
}

static void observe(int on)
{
    if (ddfuzz_observe)
        ddfuzz_observe(on);
}

/* Runs the inputs of a request, as far as there are free slots; returns the number of the last
 * one. */
static uint64_t run_all(const struct entry_point *point, const struct request *request)
{
    uint64_t count = request->count < MOST_INPUTS ? request->count : MOST_INPUTS, i = 0;
    counters.slots_used = 0;
    if (request->flags & REQUEST_COMPARISONS)
        observe(1);
    for (;; i++) {
        run(point, &entries[i], request->flags);
        if (i + 1 >= count)
            break;
        if (request->flags & (REQUEST_COUNTERS | REQUEST_NOVEL) && !counters_have_room(&counters)
            && counters.size)
            break;
        /* Set before the run, so that the server can reply for whatever kills this process. */
        serve_page->started = request->seq + i + 1;
    }
    if (request->flags & REQUEST_COMPARISONS)
        observe(0);
    return request->seq + i;
}

/* In a process that has run nothing yet, before its first run. */
static void begin_process(const struct request *request)
{
    serve_page->child = getpid();
    if (request->flags & REQUEST_QUIET)
        dup2(STDOUT_FILENO, STDERR_FILENO);
}

int loop_has_more(uint64_t done, int status)
{
    struct request each = serve_page->each;
    if (done >= each.count || done >= MOST_INPUTS || !WIFEXITED(status) || serve_page->exec_errno)
        return 0;
    entries[done - 1].status = status; /* the target may have exited during its run */
    int counts = counters.size && each.flags & (REQUEST_COUNTERS | REQUEST_NOVEL);
    return !counts || done < counters.slot_count;
}

void loop_alone(const struct entry_point *point, uint64_t number)
{
    struct request each = serve_page->each;
    begin_process(&each);
    serve_page->started = each.seq + number;
    counters.slots_used = number; /* earlier runs of the request have the slots before */
    run(point, &entries[number], each.flags);
    _exit(WEXITSTATUS(entries[number].status));
}

/* Every accepted request is answered, here or by the server, whatever the target does to the
 * descriptors: ddfuzz would wait for a lost reply. */
void loop_serve(const struct entry_point *point, struct request request)
{
    if (request.flags & REQUEST_EACH) {
        serve_page->each = request;
        loop_alone(point, 0);
    }
    begin_process(&request);
    for (uint64_t runs = 0;;) {
        if (request.count == 0)
            _exit(0); /* ddfuzz wants a new process; the server replies */
        uint64_t last = run_all(point, &request);
        int status = entries[last - request.seq].status;
        runs += last - request.seq + 1;
        int ends = runs >= RUNS_PER_CHILD || request.flags & REQUEST_LAST;
        if (ends || !serve_try_reply(last, status, 0, 0))
            _exit(WEXITSTATUS(status));
        /* After a death just before this line, ddfuzz gets two replies and ignores the second. */
        serve_page->ended = last;
        if (!serve_next(&request))
            _exit(0);
        serve_page->started = request.seq;
    }
}

/* Sets `child` of the page to 0 (no process that runs many inputs), so that the server replies when
 * this process has ended, with its CPU time. */
void loop_trace(const struct entry_point *point, const struct request *request)
{
    struct entry place = entries[0];
    serve_page->child = 0;
    serve_await_tracer(request);
    uint8_t *input = take_input(&place);
    serve_become_child();
    serve_unmap_page();
    munmap(shared, shared_size); /* so that the target cannot overwrite it */
    _exit(entry_call(point, input, place.length));
}
