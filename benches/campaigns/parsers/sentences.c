/* Sentences as navigation devices send them: `$ADDRESS,FIELD,FIELD,…*HH`, a line each, where HH is
 * the exclusive or of all bytes between `$` and `*`.
 *
 * Bug: the speed over ground of a RMC sentence that took no time divides by zero
 * (sentence_fields). */
#include "planted.h"

enum { FIELDS = 8, LONGEST = 82 };

struct sentence {
    const uint8_t *fields[FIELDS];
    size_t lengths[FIELDS], count;
};

struct position {
    int degrees, minutes, speed, satellites;
};

static int hex(uint8_t digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

static int sum_is_right(const uint8_t *body, size_t length, const uint8_t *digits)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < length; i++)
        sum ^= body[i];
    int high = hex(digits[0]), low = hex(digits[1]);
    return high >= 0 && low >= 0 && (high << 4 | low) == sum;
}

static int split(struct sentence *sentence, const uint8_t *body, size_t length)
{
    sentence->count = 0;
    for (size_t from = 0, i = 0; i <= length; i++) {
        if (i < length && body[i] != ',')
            continue;
        if (sentence->count == FIELDS)
            return 0;
        sentence->fields[sentence->count] = body + from;
        sentence->lengths[sentence->count++] = i - from;
        from = i + 1;
    }
    return 1;
}

static int number(const struct sentence *sentence, size_t field, int *value)
{
    if (field >= sentence->count || !sentence->lengths[field] || sentence->lengths[field] > 6)
        return 0;
    *value = 0;
    for (size_t i = 0; i < sentence->lengths[field]; i++) {
        uint8_t digit = sentence->fields[field][i];
        if (digit < '0' || digit > '9')
            return 0;
        *value = *value * 10 + (digit - '0');
    }
    return 1;
}

static int is_called(const struct sentence *sentence, const char *address)
{
    return sentence->lengths[0] == 5 && !memcmp(sentence->fields[0], address, 5);
}

static void fix(const struct sentence *sentence, struct position *position)
{
    int degrees, satellites;
    if (!number(sentence, 1, &degrees) || !number(sentence, 2, &satellites))
        return;
    position->degrees = degrees / 100 % 360;
    position->minutes = degrees % 100;
    position->satellites = satellites;
}

static void course(const struct sentence *sentence, struct position *position)
{
    int begin, end, way;
    if (!number(sentence, 1, &begin) || !number(sentence, 2, &end) || !number(sentence, 3, &way))
        return;
    if (end < begin || (end == begin && !WITH(SENTENCE_FIELDS)))
        return;
    if (end == begin)
        planted_hit("sentence_fields");
    volatile int speed = way / (end - begin);
    position->speed = speed;
}

static void take(const uint8_t *line, size_t length, struct position *position)
{
    struct sentence sentence;
    if (length < 4 || length > LONGEST || line[0] != '$' || line[length - 3] != '*')
        return;
    if (!sum_is_right(line + 1, length - 4, line + length - 2))
        return;
    if (!split(&sentence, line + 1, length - 4))
        return;
    if (is_called(&sentence, "GPGGA"))
        fix(&sentence, position);
    else if (is_called(&sentence, "GPRMC"))
        course(&sentence, position);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct position position = {0};
    for (size_t from = 0, i = 0; i <= size; i++)
        if (i == size || data[i] == '\n') {
            take(data + from, i - from, &position);
            from = i + 1;
        }
    planted_result((uint64_t)(position.degrees + position.minutes + position.satellites));
    return 0;
}
