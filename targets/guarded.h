/* Memory whose border kills: an access one byte beyond it dies of SIGSEGV at that very
 * instruction, at any optimisation level, with or without stack canaries, _FORTIFY_SOURCE or a
 * sanitizer. The historic fixed-size buffers live in such memory. */
#ifndef DDFUZZ_GUARDED_H
#define DDFUZZ_GUARDED_H

#include <stddef.h>
#include <stdint.h>

/* `size` writable bytes whose END touches an inaccessible page: for buffers that are overrun.
 * Returns NULL when there is no memory. Meant to be called once and kept for the process. */
uint8_t *guarded_buffer(size_t size);

/* `size` writable zero bytes whose START touches an inaccessible page: for tables that are read
 * with a negative index (down to minus one page). Returns NULL when there is no memory. */
uint8_t *guarded_table(size_t size);

#endif
