/* Ten shallow bugs, each in a function of its own: each line is a command of one letter, a colon
 * and an operand, and each command is wrong about some operands. With them a campaign has ten
 * groups within seconds, whose inputs have much to take away. */
#include "../parsers/planted.h"

#define BUG(name)                                                                                  \
    __attribute__((noinline)) static void name(unsigned operand)                                   \
    {                                                                                              \
        volatile unsigned *nowhere = NULL;                                                         \
        planted_hit(#name);                                                                        \
        *nowhere = operand;                                                                        \
    }

BUG(in_append)
BUG(in_begin)
BUG(in_copy)
BUG(in_drop)
BUG(in_end)
BUG(in_find)
BUG(in_go)
BUG(in_hold)
BUG(in_insert)
BUG(in_join)

static void command(uint8_t verb, uint8_t operand, unsigned line)
{
    static void (*const bugs[])(unsigned) = {in_append, in_begin, in_copy, in_drop, in_end,
                                             in_find,   in_go,    in_hold, in_insert, in_join};
    unsigned which = verb - 'a';
    /* Another operand for each, so that no input has them all. */
    if (which < sizeof bugs / sizeof *bugs && operand == 'A' + 2 * which && line >= which % 3)
        bugs[which](line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    unsigned line = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\n')
            line++;
        if (i >= 2 && data[i - 1] == ':')
            command(data[i - 2], data[i], line);
    }
    planted_result(line);
    return 0;
}
