/* The parser of a small shell: lists, pipelines, subshells, groups, substitutions, quotes.
 * It saves its state for each level, and has room for DEEP of them. */
#include "family.h"

BUG_WRITE(saved_states_overrun)

static const uint8_t *at, *end;
static size_t depth;

static int list(void);

static int more(void) { return at < end; }

static void blanks(void) {
    while (more() && (*at == ' ' || *at == '\t')) {
        at++;
    }
    if (more() && *at == '#') {
        while (more() && *at != '\n') {
            at++;
        }
    }
}

/* A list inside brackets, behind the opening one. */
static int nested(uint8_t closing) {
    if (++depth >= DEEP) {
        saved_states_overrun();
    }
    if (!list() || !more() || *at != closing) {
        return 0;
    }
    at++;
    depth--;
    return 1;
}

static int is_plain(uint8_t byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte && strchr("-_./=+:%,*", byte));
}

/* A quoted text behind its quote; substitutions inside double quotes are lists. */
static int quoted(uint8_t quote) {
    while (more() && *at != quote) {
        uint8_t byte = *at++;
        if (quote == '"' && byte == '$' && more() && *at == '(') {
            at++;
            if (!nested(')')) {
                return 0;
            }
        }
    }
    return more() && *at++ == quote;
}

static int word(void) {
    while (more()) {
        if (*at == '\'' || *at == '"') {
            uint8_t quote = *at++;
            if (!quoted(quote)) {
                return 0;
            }
        } else if (*at == '$') {
            at++;
            if (more() && *at == '(') {
                at++;
                if (!nested(')')) {
                    return 0;
                }
            }
        } else if (is_plain(*at)) {
            at++;
        } else {
            break;
        }
    }
    return 1;
}

static int command(void) {
    blanks();
    if (more() && (*at == '(' || *at == '{')) {
        uint8_t closing = *at++ == '(' ? ')' : '}';
        int whole = nested(closing);
        blanks();
        return whole;
    }
    while (more() && (is_plain(*at) || *at == '\'' || *at == '"' || *at == '$')) {
        if (!word()) {
            return 0;
        }
        blanks();
    }
    /* A bracket behind words would be a function. */
    return !more() || (*at != '(' && *at != '{');
}

static int list(void) {
    do {
        if (!command()) {
            return 0;
        }
    } while (more() && (*at == ';' || *at == '\n' || *at == '|' || *at == '&') && at++);
    return 1;
}

int family(const uint8_t *data, size_t size) {
    at = data;
    end = data + size;
    depth = 0;
    return list() && at == end ? PASSED : REFUSED;
}
