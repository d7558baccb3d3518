/* Tries what each line of its input says, and ends with the number of the first line whose outcome
 * is not the expected one: `+` what is to succeed, `-` what is to be refused. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static const char *first, *second; /* words behind what is to be done */

static int opens(int flags)
{
    int fd = open(first, flags, 0644);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int try_write(void) { return opens(O_WRONLY | O_CREAT); }
static int try_overwrite(void) { return opens(O_WRONLY); }
static int try_read(void) { return opens(O_RDONLY); }
static int try_mkdir(void) { return mkdir(first, 0755) == 0; }
static int try_remove(void) { return remove(first) == 0; }
static int try_rename(void) { return rename(first, second) == 0; }
static int try_truncate(void) { return truncate(first, 0) == 0; }
static int try_chmod(void) { return chmod(first, 0600) == 0; }
static int try_link(void) { return link(first, second) == 0; }
static int try_symlink(void) { return symlink(first, second) == 0; }

static int try_socket(void)
{
    return socket(atoi(first), second ? atoi(second) : SOCK_STREAM, 0) >= 0;
}

static int try_pair(void)
{
    int ends[2];
    char byte = 'x';
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && write(ends[0], &byte, 1) == 1
           && read(ends[1], &byte, 1) == 1;
}

/* To a port of this host, which a kernel without filters would let through. */
static int try_connect(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(first))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static int try_connect_local(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(to.sun_path, first, sizeof to.sun_path - 1);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static int try_interfaces(void)
{
    struct if_nameindex *all = if_nameindex();
    return all && all[0].if_index && all[1].if_index; /* more than the loopback */
}

static int try_kill(void) { return kill(atoi(first), 0) == 0; }

static int try_attach(void)
{
    int pid = atoi(first);
    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0)
        return 0;
    waitpid(pid, NULL, 0);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    return 1;
}

static int try_setuid(void) { return setuid(0) == 0 || setgid(0) == 0; }
static int try_unshare(void) { return unshare(CLONE_NEWUSER) == 0; }

static int try_clone_namespace(void)
{
    long child = syscall(SYS_clone, (unsigned long)(CLONE_NEWUSER | SIGCHLD), 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid((pid_t)child, NULL, 0);
    return child > 0;
}

static int try_clone3(void)
{
    struct clone_args how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &how, sizeof how);
    if (child == 0)
        _exit(0);
    return child > 0;
}

static int try_mount(void) { return mount("x", ".", "tmpfs", 0, NULL) == 0; }
static int try_io_uring(void) { return syscall(425, 8, NULL) >= 0 || errno == EFAULT; }
static int try_bpf(void) { return syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno != EPERM; }
static int try_key(void) { return syscall(SYS_add_key, "user", "x", "y", 1, -3) >= 0; }

static int try_type(void)
{
    return ioctl(0, TIOCSTI, "x") == 0 || errno != EPERM;
}

/* By the interface of 32 bits, where 20 is getpid. */
static int try_old_call(void)
{
#ifdef __x86_64__
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
    return result > 0;
#else
    return 0;
#endif
}

static int try_x32(void)
{
    long result = syscall(0x40000000 | SYS_getpid);
    return result > 0;
}

static void *in_thread(void *word) { return word; }

static int try_thread(void)
{
    pthread_t thread;
    void *result;
    return pthread_create(&thread, NULL, in_thread, &thread) == 0
           && pthread_join(thread, &result) == 0 && result == &thread;
}

static int try_popen(void)
{
    char text[16] = "";
    FILE *from = popen("echo a b | wc -w", "r");
    return from && fgets(text, sizeof text, from) && atoi(text) == 2 && pclose(from) == 0;
}

static int try_tmpfile(void)
{
    char name[] = "nameXXXXXX";
    return mkstemp(name) >= 0 && unlink(name) == 0;
}

static int try_home(void)
{
    const char *home = getenv("HOME"), *temporary = getenv("TMPDIR");
    first = "mine";
    return home && temporary && strcmp(home, temporary) == 0 && chdir(home) == 0
           && opens(O_WRONLY | O_CREAT);
}

/* Succeeds only where more than 64 MiB fit. */
static int try_fill(void)
{
    static char block[1 << 20];
    for (int file = 0; file < 20; file++) {
        char name[32];
        snprintf(name, sizeof name, "fill%d", file);
        int fd = open(name, O_WRONLY | O_CREAT, 0644);
        for (int i = 0; i < 8; i++)
            if (fd < 0 || write(fd, block, sizeof block) != (ssize_t)sizeof block)
                return 0;
        unlink(name); /* what is open without a name takes room, too */
    }
    return 1;
}

static int try_many_files(void)
{
    char name[32];
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "many%d", i);
        int fd = open(name, O_WRONLY | O_CREAT, 0644);
        if (fd < 0)
            return 0;
        close(fd);
    }
    return 1;
}

static int try_descriptors(void)
{
    for (int i = 0; i < 300; i++)
        if (dup(0) < 0)
            return 0;
    return 1;
}

static int try_lock(void)
{
    void *memory = malloc(1 << 16);
    return memory && mlock(memory, 1 << 16) == 0;
}

/* Leaves a daemon, which must not outlive the run. */
static int try_daemon(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            for (;;)
                pause();
        _exit(0);
    }
    return 1;
}

static int try_crash(void)
{
    volatile int *volatile nowhere = 0;
    *nowhere = 1;
    return 1;
}

static const struct {
    const char *name;
    int (*attempt)(void);
} all[] = {
    {"write", try_write},
    {"overwrite", try_overwrite},
    {"read", try_read},
    {"mkdir", try_mkdir},
    {"remove", try_remove},
    {"rename", try_rename},
    {"truncate", try_truncate},
    {"chmod", try_chmod},
    {"link", try_link},
    {"symlink", try_symlink},
    {"socket", try_socket},
    {"pair", try_pair},
    {"connect", try_connect},
    {"connect-local", try_connect_local},
    {"interfaces", try_interfaces},
    {"kill", try_kill},
    {"attach", try_attach},
    {"setuid", try_setuid},
    {"unshare", try_unshare},
    {"clone-namespace", try_clone_namespace},
    {"clone3", try_clone3},
    {"mount", try_mount},
    {"io_uring", try_io_uring},
    {"bpf", try_bpf},
    {"key", try_key},
    {"type", try_type},
    {"old-call", try_old_call},
    {"x32", try_x32},
    {"thread", try_thread},
    {"popen", try_popen},
    {"tmpfile", try_tmpfile},
    {"home", try_home},
    {"fill", try_fill},
    {"many-files", try_many_files},
    {"descriptors", try_descriptors},
    {"lock", try_lock},
    {"daemon", try_daemon},
    {"crash", try_crash},
};

static int succeeds(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].attempt();
    return -1;
}

int main(int argc, char **argv)
{
    char line[512];
    FILE *input = argc > 1 ? fopen(argv[1], "r") : stdin;
    for (int number = 1; input && fgets(line, sizeof line, input); number++) {
        char *expected = strtok(line, " \n"), *name = strtok(NULL, " \n");
        first = strtok(NULL, " \n");
        second = strtok(NULL, " \n");
        if (!expected || !name)
            return 254;
        if (first && strcmp(first, "@INPUT") == 0)
            first = argv[1];
        int outcome = succeeds(name);
        if (outcome < 0)
            return 255;
        if (outcome != (*expected == '+'))
            return number;
    }
    return 0;
}
