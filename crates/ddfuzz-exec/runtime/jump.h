/* Lets functions of the program go on into ours. */
#ifndef DDFUZZ_JUMP_H
#define DDFUZZ_JUMP_H

#include <stdint.h>

/* Bytes that the jump takes at the entry of a function. */
enum { JUMP = 5 };

/* Writes a jump to `to` over the entry of the program's function at `address` (before loading).
 * Where the system lets nobody write to code, or there is no room near the program, or the
 * machine is another, nothing is changed. */
void jump_from(uint64_t address, uintptr_t to);

#endif
