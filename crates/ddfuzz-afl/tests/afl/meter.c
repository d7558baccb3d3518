/* A second library for afl-fuzz, beside the one that is measured: before an entry is trimmed and
 * after, it writes how many runs the target has counted and how large the entry is. It mutates
 * nothing. METER names the file to write to, RUNS the one that the target counts in. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void *afl_custom_init(void *afl, unsigned seed)
{
    static int state;
    (void)afl, (void)seed;
    return &state;
}

void afl_custom_deinit(void *data)
{
    (void)data;
}

static uint64_t runs(void)
{
    uint64_t count = 0;
    FILE *file = fopen(getenv("RUNS"), "rb");
    if (!file || fread(&count, sizeof count, 1, file) != 1)
        count = 0;
    if (file)
        fclose(file);
    return count;
}

static void note(const char *when, long size, const char *name)
{
    FILE *file = fopen(getenv("METER"), "a");
    if (!file)
        return;
    fprintf(file, "%s %" PRIu64 " %ld %s\n", when, runs(), size, name);
    fclose(file);
}

/* An entry was chosen; its trimming comes next. */
uint8_t afl_custom_queue_get(void *data, const uint8_t *name)
{
    struct stat entry;
    (void)data;
    if (!stat((const char *)name, &entry))
        note("chosen", (long)entry.st_size, (const char *)name);
    return 1;
}

/* It was trimmed; mutating it comes next. */
uint32_t afl_custom_fuzz_count(void *data, const uint8_t *buffer, size_t size)
{
    (void)data, (void)buffer;
    note("trimmed", (long)size, "-");
    return 0;
}

/* Without this AFL++ does not ask for a count. */
size_t afl_custom_fuzz(void *data, uint8_t *buffer, size_t size, uint8_t **out, uint8_t *other,
                       size_t other_size, size_t most)
{
    (void)data, (void)other, (void)other_size, (void)most;
    *out = buffer;
    return size;
}
