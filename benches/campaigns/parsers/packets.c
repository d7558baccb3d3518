/* Packets of a protocol: a kind, a length in two bytes, the Adler-32 of the body, the body. A session
 * greets, agrees on a window, sends, and is answered.
 *
 * Bug: an answer that names a packet which was never sent finds no place to write (packet_reply). */
#include "planted.h"

enum { HELLO = 0x11, WINDOW = 0x22, SEND = 0x33, REPLY = 0x44, HEADER = 7, WINDOWS = 4 };

struct packet {
    uint8_t kind;
    const uint8_t *body;
    size_t length;
};

struct sent {
    uint8_t number, is_answered;
};

struct session {
    int greeted;
    uint8_t window;
    struct sent sent[WINDOWS];
    size_t sent_count;
};

static uint32_t adler32(const uint8_t *data, size_t size)
{
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < size; i++) {
        low = (low + data[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

static uint32_t word(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int hello(struct session *session, const struct packet *packet)
{
    if (packet->length < 4 || memcmp(packet->body, "helo", 4))
        return 0;
    session->greeted = 1;
    return 1;
}

static int window(struct session *session, const struct packet *packet)
{
    if (!session->greeted || packet->length != 1)
        return 0;
    session->window = packet->body[0];
    return session->window >= 1 && session->window <= WINDOWS;
}

static int send(struct session *session, const struct packet *packet)
{
    if (!session->window || packet->length < 1 || session->sent_count == session->window)
        return 0;
    session->sent[session->sent_count++] = (struct sent){packet->body[0], 0};
    return 1;
}

static struct sent *find(struct session *session, uint8_t number)
{
    for (size_t i = 0; i < session->sent_count; i++)
        if (session->sent[i].number == number && !session->sent[i].is_answered)
            return &session->sent[i];
    return NULL;
}

static int reply(struct session *session, const struct packet *packet)
{
    if (!session->sent_count || packet->length != 3)
        return 0;
    if (packet->body[1] != 'o' || packet->body[2] != 'k')
        return 0;
    struct sent *sent = find(session, packet->body[0]);
    if (!sent) {
        if (!WITH(PACKET_REPLY))
            return 0;
        planted_hit("packet_reply");
    }
    *(volatile uint8_t *)&sent->is_answered = 1;
    return 1;
}

static int take(struct session *session, const struct packet *packet)
{
    switch (packet->kind) {
    case HELLO:
        return hello(session, packet);
    case WINDOW:
        return window(session, packet);
    case SEND:
        return send(session, packet);
    case REPLY:
        return reply(session, packet);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct session session = {0};
    for (size_t at = 0; size - at >= HEADER;) {
        struct packet packet = {data[at], data + at + HEADER,
                                (size_t)data[at + 1] << 8 | data[at + 2]};
        if (packet.length > size - at - HEADER)
            break;
        if (word(data + at + 3) != adler32(packet.body, packet.length))
            break;
        if (!take(&session, &packet))
            break;
        at += HEADER + packet.length;
    }
    planted_result(session.sent_count);
    return 0;
}
