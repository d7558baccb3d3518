/* The parser of a small language; DEEP blocks inside each other are one too many.
 *
 *   statement = "if" expression block ["else" block] | "while" expression block
 *             | name "=" expression ";" | "print" expression ";"
 *   block     = "{" statement* "}" */
#include "family.h"

BUG_WRITE(scope_stack_overruns)

static const uint8_t *at, *end;
static size_t depth, operands;

static int block(void);

static void space(void) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t')) {
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

static int is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

static int is_letter(uint8_t byte) { return (byte >= 'a' && byte <= 'z') || byte == '_'; }

/* The next name or keyword; 0 where there is none. */
static size_t name(const uint8_t **text) {
    space();
    *text = at;
    if (at < end && is_letter(*at)) {
        while (at < end && (is_letter(*at) || is_digit(*at))) {
            at++;
        }
    }
    return (size_t)(at - *text);
}

static int is(const uint8_t *text, size_t length, const char *keyword) {
    return length == strlen(keyword) && memcmp(text, keyword, length) == 0;
}

static int expression(void);

static int operand(void) {
    const uint8_t *text;
    size_t length = name(&text);
    if (length) {
        return !is(text, length, "if") && !is(text, length, "else") && !is(text, length, "while") &&
               !is(text, length, "print");
    }
    if (at < end && is_digit(*at)) {
        while (at < end && is_digit(*at)) {
            at++;
        }
        return 1;
    }
    if (take('(')) {
        /* Deeper expressions are refused; blocks are what is not checked. */
        if (++operands > 200) {
            return 0;
        }
        int whole = expression() && take(')');
        operands--;
        return whole;
    }
    return 0;
}

static int expression(void) {
    do {
        if (!operand()) {
            return 0;
        }
    } while (take('+') || take('-') || take('*') || take('<') || take('>'));
    return 1;
}

static int statement(void) {
    const uint8_t *text;
    size_t length = name(&text);
    if (length == 0) {
        return 0;
    }
    if (is(text, length, "if") || is(text, length, "while")) {
        if (!expression() || !block()) {
            return 0;
        }
        const uint8_t *before = at;
        if (is(text, length, "if") && (length = name(&text)) && is(text, length, "else")) {
            return block();
        }
        at = before;
        return 1;
    }
    if (is(text, length, "print")) {
        return expression() && take(';');
    }
    return !is(text, length, "else") && take('=') && expression() && take(';');
}

static int block(void) {
    if (!take('{')) {
        return 0;
    }
    if (++depth >= DEEP) {
        scope_stack_overruns();
    }
    while (!take('}')) {
        if (!statement()) {
            return 0;
        }
    }
    depth--;
    return 1;
}

int family(const uint8_t *data, size_t size) {
    at = data;
    end = data + size;
    depth = operands = 0;
    for (space(); at < end; space()) {
        if (!statement()) {
            return REFUSED;
        }
    }
    return PASSED;
}
