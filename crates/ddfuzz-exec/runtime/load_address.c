#define _GNU_SOURCE
#include "load_address.h"

#include <link.h>
#include <stddef.h>

static int find_base(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1; /* the program itself comes first */
}

uintptr_t program_base(void)
{
    uintptr_t base = 0;
    dl_iterate_phdr(find_base, &base);
    return base;
}
