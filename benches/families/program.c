/* A family as an ordinary program: an input in a file or on stdin, exit status 0 or 1, or a crash.
 * It is what ddfuzz and afl-tmin run. */
#include "family.h"
#include "slurp.h"

void announce(const char *bug) { (void)bug; }

int main(int argc, char **argv) {
    count_call();
    size_t size;
    uint8_t *data = slurp(argc > 1 ? argv[1] : NULL, &size);
    if (!data) {
        return 2;
    }
    return family(data, size);
}
