// A table of sessions. Without FIXED a new name may be longer than its buffer, and a session may
// be shown after it was closed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kSessions = 26;
constexpr size_t kNameSize = 12;

struct Session {
    char *name;
    size_t length;
    unsigned shown;
};

struct Sessions {
    Session *table[kSessions] = {};
    bool is_open[kSessions] = {};
};

void destroy(Session *session) {
    free(session->name);
    delete session;
}

bool fits(size_t size) {
#ifdef FIXED
    return size <= kNameSize;
#else
    (void)size;
    return true;
#endif
}

bool can_be_shown(const Sessions &sessions, size_t id) {
#ifdef FIXED
    return sessions.is_open[id];
#else
    return sessions.table[id] != nullptr;
#endif
}

}  // namespace

extern "C" {

void *sessions_new() { return new Sessions(); }

void sessions_delete(void *table) {
    Sessions *sessions = static_cast<Sessions *>(table);
    for (size_t id = 0; id < kSessions; id++)
        if (sessions->is_open[id]) destroy(sessions->table[id]);
    delete sessions;
}

bool sessions_open(void *table, uint8_t id, const char *name, size_t size) {
    Sessions *sessions = static_cast<Sessions *>(table);
    if (sessions->is_open[id] || size > kNameSize) return false;
    Session *session = new Session();
    session->name = static_cast<char *>(malloc(kNameSize));
    memcpy(session->name, name, size);
    session->length = size;
    sessions->table[id] = session;
    sessions->is_open[id] = true;
    return true;
}

bool sessions_rename(void *table, uint8_t id, const char *name, size_t size) {
    Sessions *sessions = static_cast<Sessions *>(table);
    if (!sessions->is_open[id] || !fits(size)) return false;
    Session *session = sessions->table[id];
    for (size_t i = 0; i < size; i++) session->name[i] = name[i];
    session->length = size;
    return true;
}

bool sessions_close(void *table, uint8_t id) {
    Sessions *sessions = static_cast<Sessions *>(table);
    if (!sessions->is_open[id]) return false;
    destroy(sessions->table[id]);
    sessions->is_open[id] = false;
    return true;
}

bool sessions_show(void *table, uint8_t id) {
    Sessions *sessions = static_cast<Sessions *>(table);
    if (!can_be_shown(*sessions, id)) return false;
    Session *session = sessions->table[id];
    session->shown += session->length;
    return true;
}

}  // extern "C"
