/* A lock that is talked to byte by byte: commands move it from state to state, and six bytes in a
 * row, each of which is looked at only when those before it were right, open the service door.
 *
 * Bug: behind the service door stands nothing (vault_door). */
#include "planted.h"

enum state { CLOSED, ASKED, ARMED, OPEN, SERVICE };

struct lock {
    enum state state;
    unsigned tries, turns;
    uint8_t *door;
};

/* The service code: `7`, `K`, a byte with its top bit, the one before it inverted, `#`, and the
 * number of turns so far. */
static int is_service(const struct lock *lock, const uint8_t *at, size_t left)
{
    if (left < 6)
        return 0;
    if (at[0] == '7')
        if (at[1] == 'K')
            if (at[2] & 0x80)
                if (at[3] == (at[2] ^ 0xff))
                    if (at[4] == '#')
                        if (at[5] == lock->turns)
                            return 1;
    return 0;
}

static void serve(struct lock *lock)
{
    lock->state = SERVICE;
    if (!WITH(VAULT_DOOR))
        return;
    planted_hit("vault_door");
    *(volatile uint8_t *)lock->door = 1;
}

static size_t in_closed(struct lock *lock, const uint8_t *at)
{
    if (at[0] == '?')
        lock->state = ASKED;
    return 1;
}

static size_t in_asked(struct lock *lock, const uint8_t *at)
{
    switch (at[0]) {
    case 'a':
        lock->state = ARMED;
        break;
    case 'x':
        lock->state = CLOSED;
        break;
    default:
        if (++lock->tries > 3)
            lock->state = CLOSED;
    }
    return 1;
}

static size_t in_armed(struct lock *lock, const uint8_t *at, size_t left)
{
    if (is_service(lock, at, left)) {
        serve(lock);
        return 6;
    }
    if (at[0] == '>' || at[0] == '<')
        lock->turns += at[0] == '>' ? 1 : 3;
    else if (at[0] == '=' && lock->turns % 7 == 5)
        lock->state = OPEN;
    else if (at[0] == 'x')
        lock->state = CLOSED;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct lock lock = {CLOSED, 0, 0, NULL};
    for (size_t i = 0; i < size;) {
        switch (lock.state) {
        case CLOSED:
            i += in_closed(&lock, data + i);
            break;
        case ASKED:
            i += in_asked(&lock, data + i);
            break;
        case ARMED:
            i += in_armed(&lock, data + i, size - i);
            break;
        default:
            planted_result(lock.state);
            return 0;
        }
    }
    planted_result(lock.turns + lock.tries);
    return 0;
}
