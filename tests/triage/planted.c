/* Planted bugs, chosen by the first word of stdin. */
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static char input[65536];
static long length;
volatile int sink;
/* Pointers that no compiler can see through. */
char *volatile pointer;
void (*volatile function)(void);

NOINLINE void touch(char *p) { *p = 1; sink++; }
NOINLINE void deep3(char *p) { touch(p); sink++; }
NOINLINE void deep2(char *p) { deep3(p); sink++; }
NOINLINE void deep1(char *p) { deep2(p); sink++; }
NOINLINE void caller_a(void) { touch(pointer); sink++; }
NOINLINE void caller_b(void) { touch(pointer); sink += 2; }
NOINLINE void other_fault(void) { sink += *pointer; sink++; }
NOINLINE void fails(int n) { assert(n < 3 && "too many"); sink++; }
NOINLINE void gives_up(void) { abort(); }
NOINLINE void frees_twice(void) { char *p = malloc(24); pointer = p; free(pointer); free(pointer); sink++; }
NOINLINE void divides(int n) { sink = 7 / n; sink++; }
NOINLINE void illegal(void) { __builtin_trap(); }
NOINLINE void traps(void) { __asm__ volatile("int3"); sink++; }
NOINLINE void calls(void) { function(); sink++; }
NOINLINE void jumps(void) { sink++; function(); }
NOINLINE void measures(void) { sink += strlen(pointer); sink++; }
NOINLINE void overwrites(void) {
  char buffer[16];
  memcpy(buffer, input + 8, (size_t)(length - 8));
  __asm__ volatile("" ::"r"(buffer) : "memory");
  sink++;
}
#ifdef __x86_64__
NOINLINE void returns_astray(long by) {
  char *volatile *frame = __builtin_frame_address(0);
  getppid();
  frame[1] += by;
}
NOINLINE void calls_astray(long by) {
  returns_astray(by);
  __asm__ volatile("nop; nop; nop; ud2; nop; nop; movl $0, 0");
  sink++;
}
#else
NOINLINE void calls_astray(long by) { sink += (int)by; }
#endif
NOINLINE int descends(int n) { volatile char pad[200]; pad[0] = (char)n; return descends(n + 1) + pad[0]; }
NOINLINE int pong(int n);
NOINLINE int ping(int n) { volatile char pad[100]; pad[0] = (char)n; return pong(n + 1) + pad[0]; }
NOINLINE int pong(int n) { volatile char pad[60]; pad[0] = (char)n; return ping(n + 1) + pad[0]; }
NOINLINE int first_way(int n) { return descends(n) + 1; }
NOINLINE int second_way(int n) { sink++; return descends(n) + 2; }
NOINLINE int bounded(int n) { if (n == 0) { touch(pointer); } sink++; return n ? bounded(n - 1) + sink : 0; }
NOINLINE void *descends_in_thread(void *p) { sink = descends(1); return p; }
NOINLINE void beyond_the_file(void) {
  FILE *file = tmpfile();
  pointer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  touch(pointer);
  sink++;
}
NOINLINE void forbidden(void) {
  struct sock_filter trap = BPF_STMT(BPF_RET | BPF_K, 0x00030000);
  struct sock_fprog all = {1, &trap};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, 2, &all);
  getppid();
  sink++;
}
static void leaves(int s) { (void)s; _exit(3); }
static void reraises(int s) { signal(s, SIG_DFL); raise(s); }
static void gives_up_late(int s) { (void)s; abort(); }
static sigjmp_buf before;
static void recovers(int s) { (void)s; siglongjmp(before, 1); }
static void survives(int faults) {
  signal(SIGSEGV, recovers);
  for (volatile int i = 0; i < faults; i++) if (!sigsetjmp(before, 1)) other_fault();
  signal(SIGSEGV, gives_up_late);
}
NOINLINE void *thread(void *p) { touch(p); return NULL; }
static int compare(const void *a, const void *b) { (void)a; (void)b; touch(pointer); return 0; }
NOINLINE void exits(int status) { sink++; exit(status); }

static int is(const char *word) { return strncmp(input, word, strlen(word)) == 0; }

int main(void) {
  char s;
  while (length < (long)sizeof input) {
    ssize_t n = read(0, input + length, sizeof input - (size_t)length);
    if (n <= 0) break;
    length += n;
  }
  if (is("deep")) deep1(pointer);
  if (is("helper-a")) caller_a();
  if (is("helper-b")) caller_b();
  if (is("other")) other_fault();
  if (is("assert")) fails((int)length);
  if (is("abort")) gives_up();
  if (is("twice")) frees_twice();
  if (is("fpe")) divides(sink);
  if (is("ill")) illegal();
  if (is("trap")) traps();
  if (is("call-null")) calls();
  if (is("call-wild")) { function = (void (*)(void))0x13370000; calls(); }
  if (is("call-none")) { function = (void (*)(void))0x4141414141414141; calls(); }
  if (is("call-data")) { function = (void (*)(void))(uintptr_t)input; calls(); }
  if (is("jump-wild")) { function = (void (*)(void))0x13370000; jumps(); }
  if (is("jump-none")) { function = (void (*)(void))0x4141414141414141; jumps(); }
  if (is("strlen")) measures();
  if (is("smash:")) overwrites();
  if (is("astray-")) calls_astray(input[7] - '0');
  if (is("descend-1")) sink = first_way(1);
  if (is("descend-2")) sink = second_way(1);
  if (is("mutual")) sink = ping(1);
  if (is("bounded")) sink = bounded((int)length);
  if (is("handled")) { signal(SIGSEGV, leaves); deep1(pointer); }
  if (is("reraised")) { signal(SIGSEGV, reraises); deep1(pointer); }
  if (is("late-abort")) { signal(SIGSEGV, gives_up_late); deep1(pointer); }
  if (is("survived")) { survives(25); if (length > 8) caller_a(); else deep1(pointer); }
  if (is("wild-write")) { pointer = (char *)0x7000000000; touch(pointer); }
  if (is("wild-read")) { pointer = (char *)0x7000000000; other_fault(); }
  if (is("exit-7")) exits(7);
  if (is("sort")) { int a[4] = {3, 1, 2, 0}; qsort(a, 4, sizeof a[0], compare); }
  if (is("thread")) { pthread_t t; pthread_create(&t, NULL, thread, NULL); pthread_join(t, NULL); }
  if (is("burst")) { pthread_t t; pthread_create(&t, NULL, descends_in_thread, NULL); pthread_join(t, NULL); }
  if (is("handled-exit")) { signal(SIGSEGV, leaves); if (length > 13) caller_a(); else caller_b(); }
  if (is("bus")) beyond_the_file();
  if (is("sys")) forbidden();
  if (is("direct")) { sink += 5; touch(pointer); sink += 7; }
  if (is("stops")) raise(SIGSTOP);
  if (is("killed")) raise(SIGTERM);
  if (is("spin")) for (;;) sink++;
  if (is("sleep")) pause();
  if (is("random") && ((uintptr_t)&length >> 24) != 0x555555 && ((uintptr_t)&s >> 24) != 0x7fffff) touch(pointer);
  return 0;
}
