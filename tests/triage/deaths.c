/* Ways to die of which little is left, chosen by the first word of stdin. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static char input[4096];
static long length;
volatile int sink;
char *volatile pointer = (char *)0x1230;
void (*volatile function)(void) = (void (*)(void))0x13370000;
static sigjmp_buf back;

NOINLINE void touch(char *p) { *p = 1; sink++; }
NOINLINE void dies(void) { touch(pointer); sink++; }
NOINLINE void dies_elsewhere(void) { touch(pointer + 0x100); sink += 2; }
NOINLINE void calls(void) { function(); sink++; }
NOINLINE int descends(int n) { volatile char pad[200]; pad[0] = (char)n; return descends(n + 1) + pad[0]; }
NOINLINE void overwrites(void) {
  char buffer[16];
  memset(buffer, 'a', (size_t)length + 64);
  __asm__ volatile("" ::"r"(buffer) : "memory");
  sink++;
}
NOINLINE void pivots(void) { __asm__ volatile("mov $0x7331000, %%rsp\n push %%rax" ::: "memory"); }

static void *descends_in_thread(void *p) { sink = descends(1); return p; }
static void *dies_in_thread(void *p) { dies(); return p; }
static void *waits(void *p) { pause(); return p; }
static int dies_in_clone(void *p) { (void)p; dies(); return 0; }
static void leaves(int s) { (void)s; _exit(3); }
static void returns(int s) { sink += s; }
static void reraises(int s) { signal(s, SIG_DFL); raise(s); }
static void jumps(int s) { (void)s; siglongjmp(back, 1); }
static void faults(int s) { sink += s; dies_elsewhere(); }

static void on_segv(void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(SIGSEGV, &action, NULL);
}
static void use_stack(void) {
  static char memory[16384];
  stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  sigaltstack(&stack, NULL);
}
static void block_all(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
}
static void limit(int what, rlim_t value) {
  struct rlimit limit = {value, value};
  setrlimit(what, &limit);
}
static void in_thread(void *(*run)(void *)) {
  pthread_t thread;
  pthread_create(&thread, NULL, run, NULL);
  pthread_join(thread, NULL);
}

static int is(const char *word) {
  size_t size = strlen(word);
  return strncmp(input, word, size) == 0 && (input[size] == '\0' || input[size] == '\n');
}

static void by_handler(void) {
  if (is("handler-exits")) on_segv(leaves, 0);
  if (is("handler-returns")) on_segv(returns, (int)SA_RESETHAND);
  if (is("handler-reraises")) on_segv(reraises, 0);
  if (is("handler-faults")) on_segv(faults, 0);
  if (is("handler-faults-again")) on_segv(faults, SA_NODEFER | (int)SA_RESETHAND);
  if (is("handler-on-stack")) { use_stack(); on_segv(reraises, SA_ONSTACK); }
  if (is("handler-jumps")) {
    on_segv(jumps, 0);
    if (!sigsetjmp(back, 1)) dies_elsewhere();
    on_segv(SIG_DFL, 0);
  }
  if (is("handler-jumps-from-stack")) {
    use_stack();
    on_segv(jumps, SA_ONSTACK);
    if (!sigsetjmp(back, 1)) dies_elsewhere();
    on_segv(SIG_DFL, 0);
  }
  if (is("ignored")) signal(SIGSEGV, SIG_IGN);
}

int main(int argc, char **argv) {
  length = read(0, input, sizeof input - 1);
  if (argc > 1) dies();
  if (is("fine")) return 0;
  if (is("smash")) overwrites();
  if (is("wild")) calls();
  if (is("overflow")) sink = descends(1);
  if (is("overflow-in-thread")) in_thread(descends_in_thread);
  if (is("overflow-on-own-stack")) { use_stack(); on_segv(leaves, 0); sink = descends(1); }
  if (is("thread")) in_thread(dies_in_thread);
  for (int i = 0; is("beside-threads") && i < 8; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, waits, NULL);
  }
  if (is("closed")) syscall(SYS_close_range, 0, ~0u, 0);
  if (is("blocked")) block_all();
  if (is("blocked-in-thread")) { block_all(); in_thread(dies_in_thread); }
  if (is("undumpable")) prctl(PR_SET_DUMPABLE, 0);
  if (is("no-files")) { limit(RLIMIT_NOFILE, 0); }
  if (is("closed-no-files")) { limit(RLIMIT_NOFILE, 0); syscall(SYS_close_range, 0, ~0u, 0); }
  if (is("no-memory")) { limit(RLIMIT_AS, 1 << 20); limit(RLIMIT_DATA, 1 << 12); }
  if (is("pivot")) pivots();
  if (is("executes")) { char *again[] = {argv[0], "again", NULL}; execv("/proc/self/exe", again); }
  if (is("vfork")) { if (vfork() == 0) { dies(); _exit(0); } wait(NULL); return 0; }
  if (is("fork")) { if (fork() == 0) { dies(); _exit(0); } wait(NULL); return 0; }
  if (is("clone")) {
    char *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    clone(dies_in_clone, stack + (1 << 16), CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL);
    pause();
  }
  if (is("sent")) { raise(SIGFPE); }
  if (is("sent-ignored")) { signal(SIGFPE, SIG_IGN); raise(SIGFPE); }
  if (is("sent-blocked")) { block_all(); raise(SIGBUS); return 5; }
  by_handler();
  dies();
  return 0;
}
