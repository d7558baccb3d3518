/* Callbacks of a fuzzing engine that nobody listens to. */
#ifndef DDFUZZ_DISABLE_CALLBACKS_H
#define DDFUZZ_DISABLE_CALLBACKS_H

#include "entry.h"

/* Has libFuzzer's callbacks before comparisons return at once: they fill tables of an engine that
 * does not run here, and cost more than many a target. Where the system lets nobody write to code,
 * or the machine is another, nothing is changed. */
void disable_callbacks(const struct entry_point *entry);

#endif
