/* Redirects functions of the program to functions of this library. */
#ifndef DDFUZZ_JUMP_H
#define DDFUZZ_JUMP_H

#include <stdint.h>

/* length of the jump that replaces the start of a function, in bytes */
enum { JUMP = 5 };

/* Writes a jump to `to` over the start of the program's function at `address` (before loading).
 * Does nothing if code is not writable, if there is no space near the program, or on another
 * processor architecture. */
void jump_from(uint64_t address, uintptr_t to);

#endif
