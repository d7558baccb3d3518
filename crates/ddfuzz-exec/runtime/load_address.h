/* The load address of the program. */
#ifndef DDFUZZ_LOAD_ADDRESS_H
#define DDFUZZ_LOAD_ADDRESS_H

#include <stdint.h>

/* The difference between addresses in memory and addresses in the program's file. */
uintptr_t program_base(void);

#endif
