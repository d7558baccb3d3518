/* Lines of a script: `open` and `close` of a block, `skip` to the line `end` or to the end of the
 * block, and `use` of the innermost block. */
#include <stdio.h>
#include <string.h>

static int uses[8];
static int *blocks[8] = {&uses[0]};
static int depth;
static char line[32];

static int next(void) {
  if (!fgets(line, sizeof line, stdin))
    return 0;
  line[strcspn(line, "\n")] = 0;
  return 1;
}

static void open_block(void) {
  if (depth < 7) {
    depth++;
    blocks[depth] = &uses[depth];
  }
}

static void close_block(void) {
  if (depth > 0) {
    blocks[depth] = NULL;
    depth--;
  }
}

static void skip(void) {
  while (next()) {
    if (!strcmp(line, "end"))
      return;
    if (!strcmp(line, "close")) {
      blocks[depth] = NULL;
      break; /* without depth-- */
    }
  }
}

static void run(void) {
  if (!strcmp(line, "open"))
    open_block();
  else if (!strcmp(line, "close"))
    close_block();
  else if (!strcmp(line, "skip"))
    skip();
  else if (!strcmp(line, "use"))
    printf("%d\n", ++*blocks[depth]);
}

int main(void) {
  while (next())
    run();
  return 0;
}
