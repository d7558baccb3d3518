/* Reads its input, writes to 40 MiB of memory, and crashes on an input with "bad". */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  static char text[99];
  volatile char *all = malloc(40 << 20);
  if (read(0, text, sizeof text - 1) < 0 || !all)
    return 3;
  for (long at = 0; at < 40 << 20; at += 4096)
    all[at] = 1;
  if (strstr(text, "bad"))
    abort();
  return 0;
}
