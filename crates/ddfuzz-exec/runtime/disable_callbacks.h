/* Disables libFuzzer's comparison callbacks, because its engine does not run. */
#ifndef DDFUZZ_DISABLE_CALLBACKS_H
#define DDFUZZ_DISABLE_CALLBACKS_H

#include "entry.h"

/* Patches libFuzzer's comparison callbacks to return at once; they would cost more time than
 * many a target. Does nothing if code is not writable, or on another processor architecture. */
void disable_callbacks(const struct entry_point *entry);

#endif
