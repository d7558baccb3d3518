/* Fails on an X in one of two ways, which take turns: the file that is its argument grows by a byte
   in each run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int *volatile nowhere;

__attribute__((noinline)) static void first_bug(void)
{
	abort();
}

__attribute__((noinline)) static void second_bug(void)
{
	*nowhere = 1;
}

int main(int argc, char **argv)
{
	static char text[4096];
	size_t size = fread(text, 1, sizeof text, stdin);
	FILE *turns = argc > 1 ? fopen(argv[1], "a+") : NULL;
	long turn;

	if (!turns || !memchr(text, 'X', size))
		return 0;
	fputc('.', turns);
	fflush(turns);
	turn = ftell(turns);
	if (turn % 2)
		first_bug();
	else
		second_bug();
	return 0;
}
