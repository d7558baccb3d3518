/* A parser of a few lines: what is measured is what fuzzing costs beside it. */
#include "../parsers/planted.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    size_t depth = 0, deepest = 0, letters = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '(')
            depth++;
        else if (data[i] == ')' && depth)
            depth--;
        else if (data[i] >= 'a' && data[i] <= 'z')
            letters++;
        if (depth > deepest)
            deepest = depth;
    }
    planted_result(deepest + letters);
    return 0;
}
