/* A buffer whose fields only its own file knows. */
struct buffer;
struct buffer *buffer_make(void);
void buffer_clear(struct buffer *buffer);
void buffer_add(struct buffer *buffer, char letter);
const char *buffer_text(struct buffer *buffer);
