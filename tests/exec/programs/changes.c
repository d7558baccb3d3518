/* Reads its input, prints the state that its first argument names, as a new process would find it,
 * and then changes that state. A second run in the same process would print something else, if the
 * change were not put back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <getopt.h>
#include <iconv.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE = 64 * PAGE, WIDE = 600 * PAGE };

static char input[256];
static long input_length;
static int counter = 5;
static char large[LARGE];
static __thread int thread_counter = 7;
static char *heap, *mapping, *wide, *growing;
static FILE *early;
static int early_fd;
static sigjmp_buf recovery;
static int *volatile nowhere;

static void on_signal(int number) { (void)number; counter++; }
static void recover(int number) { (void)number; siglongjmp(recovery, 1); }
static void at_exit(void) { printf("at exit %d\n", counter); }
static void *in_thread(void *unused) { (void)unused; counter++; return NULL; }

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(number, &action, NULL);
}

/* Memory */

static void do_static(void) { printf("%d\n", counter++); }
static void do_thread_local(void) { printf("%d\n", thread_counter++); }

static void do_large(void)
{
    long sum = 0;
    for (int i = 0; i < LARGE; i++)
        sum += large[i]++;
    printf("%ld\n", sum);
}

/* Which page is written is in the input's third byte, and who writes it in the fourth: the program or
 * the kernel. */
static void do_page_of_input(void)
{
    int page = input[2] & 63, sum = 0;
    for (int i = 0; i < LARGE; i += PAGE)
        sum += large[i];
    printf("%d\n", sum);
    if (input[3] & 1)
        large[page * PAGE] += 100;
    else if (pread(0, large + page * PAGE, 2, 0) != 2)
        puts("not read");
}

/* More pages than can be noted as written often: each second one. */
static void do_many_pages(void)
{
    int sum = 0;
    for (int i = 0; i < WIDE; i += 2 * PAGE)
        sum += wide[i]++;
    printf("%d\n", sum);
}

static void do_heap(void)
{
    printf("%d %d\n", heap[0], heap[5000]);
    heap[0]++, heap[5000]++;
    void *other = malloc(100000), *small = malloc(24);
    printf("%p %p\n", other, small);
    memset(other, 1, 100000);
}

static void do_free(void)
{
    free(heap);
    printf("%p\n", malloc(24));
}

static int deep(int depth)
{
    volatile char local[1000];
    memset((char *)local, depth, sizeof local);
    return depth == 0 ? local[7] : deep(depth - 1) + local[3];
}

static void do_stack(void)
{
    /* Far below what has been used, as a new process finds it. */
    const volatile char *below = (const char *)__builtin_frame_address(0) - 300 * PAGE;
    int dirty = 0;
    int depth = deep(2000);
    if (input[0] == 'a')
        for (int i = 0; i < PAGE; i++)
            dirty += below[i] != 0;
    printf("%d %d\n", dirty, depth);
}

static void do_break(void)
{
    printf("%p\n", sbrk(0));
    char *grown = sbrk(LARGE);
    printf("%d\n", grown[PAGE]);
    memset(grown, 3, LARGE);
}

static void do_map(void)
{
    char *mine = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%d %d\n", mine < mapping, mine[PAGE]);
    mine[PAGE] = 1;
    munmap(mine + 4 * PAGE, PAGE);
    mprotect(mine, PAGE, PROT_READ);
    mine = mremap(mine + 8 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    printf("%d\n", mine != MAP_FAILED);
}

static void do_map_file(void)
{
    char *mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0, 0);
    printf("%d\n", input_length > 0 ? mine[0] : 0);
}

static void do_map_shared(void)
{
    int *mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("%d\n", mine[0]++);
}

/* Memory that grows downwards when it is used. */
static void do_grow(void)
{
    char *below = growing - PAGE;
    printf("%d\n", input[0] == 'a' ? *below : 0);
    *below = 9;
}

/* As much memory as there is. */
static void do_use_up(void)
{
    int blocks = 0;
    while (malloc(1 << 16))
        blocks++;
    _exit(blocks % 101);
}

static void do_unmap(void)
{
    printf("%d\n", mapping[PAGE]++);
    munmap(mapping, PAGE);
}

static void do_unmap_all(void)
{
    printf("%d\n", munmap(mapping, LARGE));
    char *mine = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%d %d\n", mine == mapping, mine[0]);
    mine[0] = 9;
}

static void do_protect(void)
{
    mapping[0]++;
    printf("%d %d\n", mapping[0], mprotect(mapping, PAGE, PROT_READ));
}

static void do_advise(void)
{
    printf("%d\n", mapping[0]);
    madvise(mapping, LARGE, MADV_DONTNEED);
    printf("%d\n", mapping[0]++);
}

static void do_remap(void)
{
    void *moved = mremap(mapping, LARGE, 2 * LARGE, MREMAP_MAYMOVE);
    printf("%d\n", moved != MAP_FAILED);
}

static void do_lock(void) { printf("%d\n", mlock(mapping, PAGE)); }

/* Descriptors and files */

static void do_open(void)
{
    int fd = open("/etc/passwd", O_RDONLY);
    char byte;
    printf("%d %d\n", fd, (int)read(fd, &byte, 1));
}

static void do_close_stdin(void)
{
    printf("%d", close(0));
    printf(" %d\n", open("/etc/passwd", O_RDONLY));
}

static void do_close_all(void)
{
    printf("%d\n", fcntl(early_fd, F_GETFD));
    fflush(stdout);
    for (int fd = 0; fd < 64; fd++)
        close(fd);
}

static void do_dup(void)
{
    printf("%d %d\n", dup(0), dup2(early_fd, 0));
    char byte = 0;
    printf("%d\n", (int)read(0, &byte, 1) + byte);
}

static void do_close_on_exec(void)
{
    printf("%d %d\n", fcntl(0, F_GETFD), fcntl(early_fd, F_GETFD));
    fcntl(0, F_SETFD, FD_CLOEXEC);
    fcntl(early_fd, F_SETFD, FD_CLOEXEC);
}

static void do_status_flags(void)
{
    printf("%d %d\n", fcntl(0, F_GETFL), fcntl(early_fd, F_GETFL));
    fcntl(0, F_SETFL, O_NONBLOCK);
    fcntl(early_fd, F_SETFL, O_NONBLOCK);
}

/* The files to which the outputs lead are shared by all runs. */
static void do_output_flags(void)
{
    int flags = 0;
    for (int fd = 1; fd <= 2; fd++) {
        int now = fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK);
        flags |= now;
        fcntl(fd, F_SETFL, now | (fd == 1 ? O_APPEND : O_NONBLOCK));
    }
    printf("%d\n", flags);
    fflush(stdout);
    if (input[0] == 'b' && fork() == 0)
        _exit(0);
    _exit(flags != 0);
}

static void do_offset(void)
{
    printf("%ld %ld\n", (long)lseek(0, 0, SEEK_CUR), (long)lseek(early_fd, 7, SEEK_CUR));
    lseek(0, 3, SEEK_SET);
}

static void do_stream(void)
{
    printf("%d", fgetc(early));
    printf(" %d\n", fgetc(early));
}

static void do_pipe(void)
{
    int ends[2];
    printf("%d", pipe(ends));
    printf(" %d %d\n", ends[0], ends[1]);
    if (write(ends[1], "x", 1) == 1)
        puts("written");
}

static void do_socket(void)
{
    int ends[2];
    printf("%d\n", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

static void do_event(void) { printf("%d\n", eventfd(0, 0)); }
static void do_epoll(void) { printf("%d\n", epoll_create1(0)); }
static void do_inotify(void) { printf("%d\n", inotify_init()); }
static void do_memfd(void) { printf("%d\n", memfd_create("mine", 0)); }

static void do_create(void)
{
    printf("%d\n", access("created", F_OK));
    int fd = open("created", O_WRONLY | O_CREAT, 0600);
    printf("%d\n", (int)write(fd, "x", 1));
}

static void do_directory(void)
{
    printf("%d\n", mkdir("made", 0700));
    printf("%d\n", rmdir("made"));
}

static void do_stdout_to_file(void)
{
    fflush(stdout);
    if (!freopen("/dev/null", "w", stdout))
        abort();
    puts("to nowhere");
}

static int open_null(int flags) { return open("/dev/null", flags); }

/* What writes return, in the exit status: none of them is seen. */
static void do_write_results(void)
{
    static const char bytes[] = "bytes";
    char *beyond = (char *)(UINTPTR_MAX >> 1);
    volatile size_t too_many = SIZE_MAX;
    int right = 0;
    fflush(stdout);
    right += write(1, bytes, 5) == 5;
    right += write(2, bytes, 0) == 0;
    right += write(1, nowhere, 7) == 7;
    right += write(1, beyond, 7) == -1 && errno == EFAULT;
    right += write(1, bytes, too_many) == -1;
    right += write(1, nowhere, 0x7fffffff) == 0x7ffff000;
    right += close(1) == 0 && write(1, bytes, 5) == -1 && errno == EBADF;
    right += open_null(O_RDONLY) == 1 && write(1, bytes, 5) == -1 && errno == EBADF;
    right += open_null(O_RDWR) > 2;
    _exit(100 + right);
}

static void do_sendfile(void)
{
    off_t at = 0;
    fflush(stdout);
    long sent = sendfile(1, 0, &at, 100);
    printf("%ld\n", sent);
}

/* Attributes of the process */

static void do_handler(void)
{
    struct sigaction before;
    sigaction(SIGUSR1, NULL, &before);
    printf("%d %d\n", before.sa_handler == SIG_DFL, signal(SIGINT, SIG_IGN) == SIG_DFL);
    handle(SIGUSR1, on_signal);
}

static void do_mask(void)
{
    sigset_t set, before;
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, &before);
    printf("%d %d\n", sigismember(&before, SIGUSR1), sigismember(&before, SIGSYS));
    sigprocmask(SIG_SETMASK, NULL, &before);
    printf("%d %d\n", sigismember(&before, SIGSYS), sigismember(&before, SIGKILL));
}

static void do_signal_stack(void)
{
    stack_t mine = {.ss_sp = large, .ss_size = LARGE}, before;
    sigaltstack(&mine, &before);
    printf("%d\n", before.ss_flags == SS_DISABLE);
}

static void do_raise(void)
{
    handle(SIGUSR1, on_signal);
    raise(SIGUSR1);
    printf("%d\n", counter);
}

static void do_pending(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR2);
    sigpending(&set);
    printf("%d\n", sigismember(&set, SIGUSR2));
}

static void do_abort(void) { abort(); }
static void do_crash(void) { printf("%d\n", *nowhere); }
static void do_divide(void) { volatile int zero = 0; printf("%d\n", 5 / zero); }
static void do_trap(void) { __asm__ volatile("int3"); }
static void do_illegal(void) { __asm__ volatile("ud2"); }

static void do_crash_half(void)
{
    fflush(stdout);
    counter++;
    if (input[0] == 'b')
        printf("%d\n", *nowhere);
    printf("%d\n", counter);
}

static void do_recover(void)
{
    handle(SIGSEGV, recover);
    if (sigsetjmp(recovery, 1) == 0)
        printf("%d\n", *nowhere);
    printf("recovered %d\n", counter++);
}

static int endless(int depth)
{
    volatile char local[4096];
    local[0] = (char)depth;
    return endless(depth + 1) + local[0];
}

static void do_overflow(void) { printf("%d\n", endless(0)); }

static void do_kill(void) { kill(getpid(), SIGKILL); }
static void do_terminate(void) { raise(SIGTERM); }

static void do_alarm(void)
{
    printf("%u\n", alarm(1000));
}

static void do_timer(void)
{
    struct itimerval long_time = {.it_value = {1000, 0}}, before;
    setitimer(ITIMER_VIRTUAL, &long_time, &before);
    printf("%ld\n", (long)before.it_value.tv_sec);
}

static void do_posix_timer(void)
{
    timer_t timer;
    printf("%d\n", timer_create(CLOCK_MONOTONIC, NULL, &timer));
    printf("%d\n", (int)(intptr_t)timer);
}

static void do_fork(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
}

static void do_orphan(void)
{
    if (fork() == 0)
        for (;;)
            pause();
}

static void do_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    printf("%d\n", counter);
}

static void do_mode_mask(void) { printf("%o\n", umask(0777)); }

static void do_working_directory(void)
{
    char path[PAGE];
    printf("%d\n", strcmp(getcwd(path, sizeof path), "/") == 0);
    printf("%d\n", chdir("/"));
}

/* How deep the working directory lies. */
static int depth(void)
{
    char path[PAGE];
    int slashes = 0;
    for (const char *at = getcwd(path, sizeof path); at && *at; at++)
        slashes += *at == '/';
    return slashes;
}

static void do_moves(void)
{
    int here = open(".", O_RDONLY | O_DIRECTORY);
    printf("%d %d %d\n", depth(), fchdir(here), fchdir(here + 100));
    printf("%d %d\n", chdir(".."), chdir("missing"));
}

static void do_local_service(void)
{
    struct sockaddr_un address = {AF_UNIX, "missing/socket"};
    int service = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    printf("%d %d", service, connect(service, (struct sockaddr *)&address, sizeof address - 1));
    printf(" %d %d\n", errno == ENOENT, read(service, &address, 1) < 0);
}

static void do_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("%ld\n", (long)limit.rlim_cur);
    limit.rlim_cur = 20;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void do_priority(void) { printf("%d\n", nice(1)); }
static void do_session(void) { printf("%d\n", setpgid(0, 0)); }

static void do_name(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    puts(name);
    prctl(PR_SET_NAME, "other");
}

static void do_dumpable(void)
{
    printf("%d\n", prctl(PR_GET_DUMPABLE));
    prctl(PR_SET_DUMPABLE, 0);
}

static void do_affinity(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    printf("%d\n", sched_setaffinity(0, sizeof set, &set));
}

static void do_cpu_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    printf("%d\n", now.tv_sec > 5);
}

static void do_times(void) { struct tms used; printf("%d\n", times(&used) == -1); }

static void do_usage(void)
{
    struct rusage usage = {0};
    int failed = getrusage(RUSAGE_SELF, &usage);
    printf("%d %d\n", failed, usage.ru_utime.tv_sec > 5);
}

static void do_clock(void) { printf("%d\n", time(NULL) > 1000); }

static void do_random(void)
{
    unsigned char bytes[16] = {0};
    printf("%d\n", (int)getrandom(bytes, sizeof bytes, 0));
}

/* The C library's own state */

static void do_errno(void) { printf("%d\n", errno); errno = 77; }

static void do_environment(void)
{
    printf("%s\n", getenv("CHANGED") ? "set" : "not set");
    setenv("CHANGED", "yes", 1);
}

static void do_locale(void)
{
    printf("%s\n", setlocale(LC_ALL, NULL));
    setlocale(LC_ALL, "C.UTF-8");
}

static void do_rand(void) { printf("%d %ld\n", rand(), random()); }

static void do_tokens(void)
{
    static char text[] = "a b c";
    char *token = strtok(text, " ");
    printf("%s %s\n", token, strtok(NULL, " "));
}

static void do_options(void)
{
    char *words[] = {"x", "-a", "-b", NULL};
    printf("%d %d\n", getopt(3, words, "ab"), optind);
}

static void do_at_exit(void) { atexit(at_exit); printf("registered\n"); }
static void do_quick_exit(void) { at_quick_exit(at_exit); fflush(stdout); quick_exit(4); }
static void do_exit_now(void) { printf("lost"); _exit(6); }
static void do_exit_thread(void) { fflush(stdout); syscall(SYS_exit, 8); }

static void do_library(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    printf("%d %d\n", library != NULL, library && dlsym(library, "cbrt"));
}

static void do_iconv(void)
{
    iconv_t converter = iconv_open("UTF-16", "ISO-8859-1");
    printf("%d\n", converter != (iconv_t)-1);
}

static void do_unfinished(void) { setvbuf(stdout, NULL, _IOFBF, 1 << 16); printf("left in a buffer"); }

/* Registers */

static void do_rounding(void)
{
    volatile double third = 1.0, three = 3.0;
    printf("%d %.20f\n", fegetround(), third / three);
    fesetround(FE_UPWARD);
}

static void do_exceptions(void)
{
    volatile double zero = 0, one = 1;
    printf("%d\n", fetestexcept(FE_ALL_EXCEPT));
    one = one / zero;
}

static void do_vectors(void)
{
    unsigned char out[16];
    __asm__ volatile("movdqu %%xmm9, %0\n pcmpeqd %%xmm9, %%xmm9" : "=m"(out) : : "xmm9");
    printf("%d\n", out[3]);
}

static void do_direction(void) { printf("x\n"); fflush(stdout); __asm__ volatile("std"); _exit(0); }

static void do_thread_pointer(void)
{
    uintptr_t base = 0;
    syscall(SYS_arch_prctl, 0x1003, &base);
    printf("%d\n", base != 0);
    fflush(stdout);
    syscall(SYS_arch_prctl, 0x1002, large + LARGE / 2);
    syscall(SYS_exit_group, 9);
}

static void do_segment_bases(void)
{
    uintptr_t base = 0;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    printf("%d\n", base != 0);
    fflush(stdout);
    __asm__ volatile("wrgsbase %0" : : "r"(large));
    __asm__ volatile("wrfsbase %0\n mov $231, %%eax\n mov $5, %%edi\n syscall"
                     :
                     : "r"(large + LARGE / 2)
                     : "rax", "rdi", "rcx", "r11");
}

/* Hostile */

static void do_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, code};
    printf("%d\n", getppid() == -1);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    printf("%d\n", getppid() == -1);
}

static void do_dispatch(void)
{
    static char selector = 0;
    printf("%d\n", prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &selector));
    fflush(stdout);
    selector = 1;
    syscall(SYS_getuid);
    puts("not killed");
}

static void do_own_sigsys(void)
{
    handle(SIGSYS, on_signal);
    raise(SIGSYS);
    printf("%d\n", counter);
}

static void do_other_abi(void)
{
    long result = 20; /* getpid of 32-bit programs */
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    printf("%d\n", result == getpid());
}

static void do_raw(void)
{
    long result = SYS_brk;
    __asm__ volatile("syscall" : "+a"(result) : "D"(0) : "rcx", "r11", "memory");
    printf("%lx\n", result);
    result = SYS_brk;
    __asm__ volatile("syscall" : "+a"(result) : "D"(sbrk(0) + PAGE) : "rcx", "r11", "memory");
}

/* `mov $N, %eax; ret`, in own memory and over this program's code. */
static void do_new_code(void)
{
    unsigned char code[] = {0xb8, 3, 0, 0, 0, 0xc3};
    int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    unsigned char *mine = mmap(NULL, PAGE, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(mine, code, sizeof code);
    printf("%d\n", ((int (*)(void))mine)());
}

__attribute__((noinline, aligned(4096))) static int three(void) { return counter > 1000 ? 4 : 3; }

static void do_own_code(void)
{
    unsigned char code[] = {0xb8, 9, 0, 0, 0, 0xc3};
    unsigned char *at = (unsigned char *)three;
    printf("%d\n", three());
    mprotect((void *)((uintptr_t)at & -PAGE), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(at, code, sizeof code);
    printf("%d\n", ((int (*volatile)(void))three)());
}

/* Where ddfuzz's own memory lies, by its source. */
static void do_reserve(void)
{
    volatile char *at = (volatile char *)0x100000080000;
    puts("before");
    fflush(stdout);
    for (int i = 0; i < 3000; i++)
        at[i] ^= 0x55;
    puts("not killed");
}

/* Where ddfuzz's memory can be read, and a new process has none: the one difference that is left.
 * A run on an input with an `a` does not look. */
static void do_peek(void)
{
    if (input[0] == 'a')
        return;
    access((const char *)0x100000080000, F_OK);
    _exit(errno == EFAULT ? 8 : 7);
}

static void do_reserve_copies(void)
{
    volatile char *at = (volatile char *)0x100004000000;
    *at = 3;
    puts("not killed");
}

static int spoil(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (!strstr(info->dlpi_name, "ddfuzz"))
        return 0;
    *(int *)found = 1;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_W)
            memset((char *)info->dlpi_addr + part->p_vaddr, 0x5a, part->p_memsz);
    }
    return 1;
}

static void do_library_data(void)
{
    int found = 0;
    puts("before");
    fflush(stdout);
    dl_iterate_phdr(spoil, &found);
    /* A new process has no such library; one into which it was preloaded may die of this. */
    _exit(0);
}

static void do_maps(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    while (maps && fgets(line, sizeof line, maps))
        found += strncmp(line, "1000000", 7) == 0;
    printf("%d\n", found);
}

static void do_memory_file(void)
{
    int fd = open("/proc/self/mem", O_RDWR);
    int five = 55;
    printf("%d\n", counter);
    printf("%d %d\n", (int)pwrite(fd, &five, sizeof five, (off_t)(uintptr_t)&counter), counter);
}

static void do_memory_call(void)
{
    int five = 55;
    struct iovec from = {&five, sizeof five}, to = {&counter, sizeof counter};
    printf("%d\n", counter);
    printf("%d %d\n", (int)process_vm_writev(getpid(), &from, 1, &to, 1, 0), counter);
}

static void do_descriptors_of_ddfuzz(void)
{
    int found = 0;
    for (int fd = 100; fd < 300; fd++)
        found += fcntl(fd, F_GETFD) >= 0;
    printf("%d\n", found);
}

static void do_close_range(void)
{
    printf("%d\n", (int)syscall(436, 3, ~0u, 0));
}

static void do_trace_me(void) { printf("%ld\n", ptrace(PTRACE_TRACEME, 0, NULL, NULL)); }

static void do_parent(void)
{
    fflush(stdout);
    int status = 0;
    if (fork() == 0)
        _exit(kill(getppid(), 0));
    wait(&status);
    printf("%d\n", status);
}

static void do_loop(void)
{
    if (input[0] == 'b')
        for (;;)
            counter++;
    printf("%d\n", counter);
}

static void do_eat(void)
{
    if (input[0] == 'b')
        for (;;)
            memset(malloc(1 << 20), 1, 1 << 20);
    printf("%d\n", counter);
}

#define KIND(name) {#name, do_##name}
static const struct {
    const char *name;
    void (*change)(void);
} kinds[] = {
    KIND(static), KIND(thread_local), KIND(large), KIND(page_of_input),
    KIND(many_pages), KIND(heap), KIND(free), KIND(stack),
    KIND(break), KIND(map), KIND(map_file), KIND(map_shared), KIND(grow), KIND(use_up), KIND(unmap),
    KIND(unmap_all),
    KIND(protect), KIND(advise), KIND(remap), KIND(lock), KIND(open), KIND(close_stdin),
    KIND(close_all), KIND(dup), KIND(close_on_exec), KIND(status_flags), KIND(output_flags), KIND(offset),
    KIND(stream), KIND(pipe), KIND(socket), KIND(event), KIND(epoll), KIND(inotify), KIND(memfd),
    KIND(create), KIND(directory), KIND(stdout_to_file), KIND(sendfile), KIND(write_results), KIND(handler), KIND(mask),
    KIND(signal_stack), KIND(raise), KIND(pending), KIND(abort), KIND(crash), KIND(divide),
    KIND(trap), KIND(illegal), KIND(crash_half), KIND(recover), KIND(overflow), KIND(kill),
    KIND(terminate), KIND(alarm), KIND(timer), KIND(posix_timer), KIND(fork), KIND(orphan),
    KIND(thread), KIND(mode_mask), KIND(working_directory), KIND(moves), KIND(local_service), KIND(limit), KIND(priority),
    KIND(session), KIND(name), KIND(dumpable), KIND(affinity), KIND(cpu_time), KIND(times),
    KIND(usage), KIND(clock), KIND(random), KIND(errno), KIND(environment), KIND(locale),
    KIND(rand), KIND(tokens), KIND(options), KIND(at_exit), KIND(quick_exit), KIND(exit_now),
    KIND(exit_thread), KIND(library), KIND(iconv), KIND(unfinished), KIND(rounding),
    KIND(exceptions), KIND(vectors), KIND(direction), KIND(thread_pointer), KIND(segment_bases),
    KIND(filter), KIND(dispatch), KIND(own_sigsys), KIND(other_abi), KIND(raw), KIND(new_code),
    KIND(own_code), KIND(reserve), KIND(peek), KIND(reserve_copies), KIND(library_data), KIND(maps),
    KIND(memory_file), KIND(memory_call), KIND(descriptors_of_ddfuzz), KIND(close_range),
    KIND(trace_me), KIND(parent), KIND(loop), KIND(eat),
};

/* What is there when the input is first read. */
static void prepare(void)
{
    heap = calloc(1, 10000);
    mapping = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapping[0] = 42;
    mapping[PAGE] = 43;
    wide = mmap(NULL, WIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    early_fd = open("/etc/passwd", O_RDONLY);
    early = fopen("/etc/passwd", "r");
    if (!early || fgetc(early) == EOF)
        abort();
}

/* A page that may grow downwards, with room below it. */
static void map_growing(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS, access = PROT_READ | PROT_WRITE;
    char *room = mmap(NULL, 2 * WIDE, PROT_NONE, flags, -1, 0);
    munmap(room, 2 * WIDE);
    growing = mmap(room + WIDE, PAGE, access, flags | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    if (strcmp(wanted, "list") == 0) {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            puts(kinds[i].name);
        return 0;
    }
    prepare();
    if (strcmp(wanted, "grow") == 0)
        map_growing();
    errno = 0;
    input_length = read(0, input, sizeof input - 1);
    printf("%ld %.8s\n", input_length, input);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, wanted) == 0) {
            kinds[i].change();
            return input_length & 1;
        }
    return 99;
}
