/* Where the program itself was loaded. */
#ifndef DDFUZZ_LOAD_ADDRESS_H
#define DDFUZZ_LOAD_ADDRESS_H

#include <stdint.h>

/* What was added to the addresses of the program's file. */
uintptr_t program_base(void);

#endif
