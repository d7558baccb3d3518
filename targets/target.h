/* What every bundled target offers. */
#ifndef DDFUZZ_TARGET_H
#define DDFUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Does the tool's work on `size` bytes at `data` (never NULL, not NUL-terminated), writing its
 * result to stdout and its complaints to stderr. Returns 0, or 1 when the input was at fault.
 * It never exits, and each call starts afresh: thousands of calls in one process behave like as
 * many processes. */
int target_main(const uint8_t *data, size_t size);

#endif
