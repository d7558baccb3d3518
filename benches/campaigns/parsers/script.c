/* A language of keywords: `let NAME = NUMBER;`, `repeat NUMBER { … }`, `break;`, `print NAME;`.
 *
 * Bug: `break` looks for the innermost loop, and there is none in a `defer` block that lies in a
 * loop (script_loop). */
#include "planted.h"

enum { NAMES = 26, DEPTH = 6 };

struct loop {
    unsigned left;
};

struct script {
    const uint8_t *at, *end;
    long values[NAMES];
    struct loop *innermost;
    unsigned depth, steps;
};

static void blanks(struct script *script)
{
    while (script->at < script->end && (*script->at == ' ' || *script->at == '\n'))
        script->at++;
}

static int sign(struct script *script, char wanted)
{
    blanks(script);
    if (script->at == script->end || *script->at != (uint8_t)wanted)
        return 0;
    script->at++;
    return 1;
}

static void keyword(struct script *script, char to[8])
{
    size_t length = 0;
    blanks(script);
    while (script->at < script->end && length < 7 && *script->at >= 'a' && *script->at <= 'z')
        to[length++] = (char)*script->at++;
    to[length] = 0;
}

static int number(struct script *script, long *value)
{
    blanks(script);
    int digits = 0;
    for (*value = 0; script->at < script->end && digits < 4; digits++) {
        unsigned digit = *script->at - '0';
        if (digit > 9)
            break;
        *value = *value * 10 + digit;
        script->at++;
    }
    return digits > 0;
}

static int name(struct script *script, size_t *index)
{
    blanks(script);
    if (script->at == script->end || *script->at < 'a' || *script->at > 'z')
        return 0;
    *index = *script->at++ - 'a';
    return 1;
}

static int block(struct script *script);

static int let(struct script *script)
{
    size_t index;
    long value;
    if (!name(script, &index) || !sign(script, '=') || !number(script, &value))
        return 0;
    script->values[index] = value;
    return sign(script, ';');
}

static int repeat(struct script *script)
{
    long times;
    if (!number(script, &times) || times > 3 || !times)
        return 0;
    struct loop loop = {(unsigned)times}, *outer = script->innermost;
    const uint8_t *body = script->at;
    int sound = 1;
    script->innermost = &loop;
    while (sound && loop.left && script->steps < 200) {
        loop.left--;
        script->at = body;
        sound = block(script);
    }
    script->innermost = outer;
    return sound;
}

static int defer(struct script *script)
{
    struct loop *outer = script->innermost;
    script->innermost = NULL;
    int sound = block(script);
    script->innermost = outer;
    return sound;
}

static int leave(struct script *script)
{
    struct loop *loop = script->innermost;
    if (!script->depth || (!loop && (!WITH(SCRIPT_LOOP) || script->depth < 2)))
        return 0;
    if (!loop)
        planted_hit("script_loop");
    *(volatile unsigned *)&loop->left = 0;
    return sign(script, ';');
}

static int statement(struct script *script)
{
    char word[8];
    size_t index;
    script->steps++;
    keyword(script, word);
    if (!strcmp(word, "let"))
        return let(script);
    if (!strcmp(word, "repeat"))
        return repeat(script);
    if (!strcmp(word, "defer"))
        return defer(script);
    if (!strcmp(word, "break"))
        return leave(script);
    if (!strcmp(word, "print"))
        return name(script, &index) && sign(script, ';');
    return 0;
}

static int block(struct script *script)
{
    if (script->depth == DEPTH || !sign(script, '{'))
        return 0;
    script->depth++;
    int sound = 1;
    while (sound && !sign(script, '}'))
        sound = statement(script);
    script->depth--;
    return sound;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct script script = {.at = data, .end = data + size};
    while (script.steps < 200) {
        blanks(&script);
        if (script.at == script.end || !statement(&script))
            break;
    }
    planted_result((uint64_t)script.values[0] + script.steps);
    return 0;
}
