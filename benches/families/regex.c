/* The compiler of a small regex engine; its stack of open groups has room for DEEP of them. */
#include "family.h"

BUG_ABORT(group_stack_overruns)

static const uint8_t *at, *end;
static size_t depth;

static int alternatives(void);

static int more(void) { return at < end; }

static int take(uint8_t byte) {
    if (more() && *at == byte) {
        at++;
        return 1;
    }
    return 0;
}

static int group(void) {
    if (take('?') && !take(':') && !take('=') && !take('!')) {
        return 0;
    }
    if (++depth >= DEEP) {
        group_stack_overruns();
    }
    if (!alternatives() || !take(')')) {
        return 0;
    }
    depth--;
    return 1;
}

static int class(void) {
    take('^');
    do {
        take('\\');
        if (!more()) {
            return 0;
        }
        at++;
    } while (more() && *at != ']');
    return take(']');
}

static int digits(void) {
    const uint8_t *from = at;
    while (more() && *at >= '0' && *at <= '9') {
        at++;
    }
    return at > from;
}

/* What repeats the atom before it. */
static int quantifier(void) {
    if (take('{')) {
        if (!digits()) {
            return 0;
        }
        if (take(',')) {
            digits();
        }
        if (!take('}')) {
            return 0;
        }
    } else if (!take('*') && !take('+') && !take('?')) {
        return 1;
    }
    take('?');
    return 1;
}

static int sequence(void) {
    while (more() && *at != '|' && *at != ')') {
        uint8_t byte = *at++;
        int whole = 1;
        switch (byte) {
        case '(': whole = group(); break;
        case '[': whole = class(); break;
        case '\\': whole = more(); at += whole; break;
        case '*': case '+': case '?': case '{': case '}': case ']': whole = 0; break;
        default: break;
        }
        if (!whole || !quantifier()) {
            return 0;
        }
    }
    return 1;
}

static int alternatives(void) {
    do {
        if (!sequence()) {
            return 0;
        }
    } while (take('|'));
    return 1;
}

int family(const uint8_t *data, size_t size) {
    at = data;
    end = data + size;
    depth = 0;
    return alternatives() && at == end ? PASSED : REFUSED;
}
