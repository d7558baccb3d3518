/* A target as a program: `NAME [FILE]` works on FILE, or on stdin without one. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"

#define FIRST_CHUNK 65536

/* Reads all of `file` into memory of exactly the input's size, so that a tool that reads past
 * its input is seen by whatever watches the heap. Returns NULL with errno set on failure. */
static uint8_t *read_all(int file, size_t *size)
{
	size_t capacity = FIRST_CHUNK;
	uint8_t *data = malloc(capacity);

	*size = 0;
	while (data != NULL) {
		ssize_t got = read(file, data + *size, capacity - *size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			uint8_t *exact = got < 0 ? NULL : realloc(data, *size > 0 ? *size : 1);
			if (exact == NULL)
				free(data);
			return exact;
		}
		*size += (size_t)got;
		if (*size == capacity) {
			uint8_t *wider = realloc(data, capacity *= 2);
			if (wider == NULL)
				free(data);
			data = wider;
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "standard input";
	int file = STDIN_FILENO;
	size_t size;
	uint8_t *data;
	int status;

	if (argc > 2) {
		fprintf(stderr, "usage: %s [FILE]\n", argv[0]);
		return 2;
	}
	if (argc == 2)
		file = open(name, O_RDONLY | O_CLOEXEC);
	data = file < 0 ? NULL : read_all(file, &size);
	if (data == NULL) {
		fprintf(stderr, "%s: cannot read %s: %s\n", argv[0], name, strerror(errno));
		return 2;
	}
	status = target_main(data, size);
	free(data);
	return status;
}
