/* Files at which an installed program fails, as -DSCRIPT="…" says: an interestingness test, which
 * gets the file as its argument. */
#include "family.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

BUG_WRITE(program_fails)

static void write_file(int file, const uint8_t *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t wrote = write(file, data + done, size - done);
        if (wrote <= 0) {
            _exit(99);
        }
        done += (size_t)wrote;
    }
}

/* The exit status of the script. */
static int run(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", SCRIPT, path, (char *)NULL);
        _exit(99);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) == 99) {
        _exit(99);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int family(const uint8_t *data, size_t size) {
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/candidate-XXXXXX%s", folder ? folder : "/tmp", ENDING);
    int file = mkstemps(path, (int)strlen(ENDING));
    if (file < 0) {
        _exit(99);
    }
    write_file(file, data, size);
    close(file);
    int status = run(path);
    unlink(path);
    if (status == 0) {
        program_fails();
    }
    return REFUSED;
}
