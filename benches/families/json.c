/* A reader of JSON with one value in a place where it breaks.
 * VARIANT 0: a negative number at items[*].key     {"items":[{"key":-1}]}
 * VARIANT 1: null at user.name                     {"user":{"name":null}}
 * VARIANT 2: an empty list at row.cells[*]         {"row":{"cells":[[]]}} */
#include "family.h"

enum { LEVELS = 64 };
BUG_WRITE(value_is_not_expected)

static const uint8_t *at, *end;
/* The key that leads to each level; a list has a null pointer. */
static struct { const uint8_t *key; size_t length; } path[LEVELS];
static size_t depth;
static int found;

static void space(void) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) {
        at++;
    }
}

static int take(uint8_t byte) {
    space();
    if (at < end && *at == byte) {
        at++;
        return 1;
    }
    return 0;
}

static int word(const char *text) {
    size_t length = strlen(text);
    if ((size_t)(end - at) < length || memcmp(at, text, length) != 0) {
        return 0;
    }
    at += length;
    return 1;
}

/* A string behind its first quote. */
static int string(void) {
    for (; at < end; at++) {
        if (*at == '"') {
            at++;
            return 1;
        }
        if (*at < ' ') {
            return 0;
        }
        if (*at == '\\' && (++at == end || !*at || !strchr("\"\\/bfnrtu", *at))) {
            return 0;
        }
    }
    return 0;
}

static int digits(void) {
    const uint8_t *from = at;
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    return at > from;
}

static int number(void) {
    if (at < end && *at == '-') {
        at++;
    }
    const uint8_t *from = at;
    if (!digits() || (*from == '0' && at - from > 1)) {
        return 0;
    }
    if (at < end && *at == '.') {
        at++;
        if (!digits()) {
            return 0;
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) {
            at++;
        }
        return digits();
    }
    return 1;
}

/* Whether the level was reached by this key; null stands for a list. */
static int by(size_t level, const char *key) {
    if (level >= depth) {
        return 0;
    }
    if (!key || !path[level].key) {
        return !key && !path[level].key;
    }
    return path[level].length == strlen(key) && memcmp(path[level].key, key, strlen(key)) == 0;
}

static int value(void);

static int object(void) {
    if (take('}')) {
        return 1;
    }
    do {
        if (!take('"')) {
            return 0;
        }
        const uint8_t *key = at;
        if (!string()) {
            return 0;
        }
        path[depth].key = key;
        path[depth].length = (size_t)(at - 1 - key);
        if (!take(':')) {
            return 0;
        }
        depth++;
        if (!value()) {
            return 0;
        }
        depth--;
    } while (take(','));
    return take('}');
}

static int list(void) {
    path[depth].key = NULL;
    if (take(']')) {
        found |= VARIANT == 2 && depth == 3 && by(0, "row") && by(1, "cells") && by(2, NULL);
        return 1;
    }
    do {
        path[depth].key = NULL;
        depth++;
        if (!value()) {
            return 0;
        }
        depth--;
    } while (take(','));
    return take(']');
}

static int value(void) {
    space();
    if (at == end || depth == LEVELS) {
        return 0;
    }
    switch (*at) {
    case '{': at++; return object();
    case '[': at++; return list();
    case '"': at++; return string();
    case 't': return word("true");
    case 'f': return word("false");
    case 'n':
        found |= VARIANT == 1 && depth == 2 && by(0, "user") && by(1, "name");
        return word("null");
    default:
        found |= VARIANT == 0 && *at == '-' && depth == 3 && by(0, "items") && by(1, NULL) && by(2, "key");
        return number();
    }
}

int family(const uint8_t *data, size_t size) {
    at = data;
    end = data + size;
    depth = 0;
    found = 0;
    if (size == 0) {
        return PASSED;
    }
    int whole = value();
    space();
    if (!whole || at != end) {
        return REFUSED;
    }
    if (found) {
        value_is_not_expected();
    }
    return PASSED;
}
