/* Hangs on an `h`; takes 0.15 s of CPU time on any other input that is not empty. */
#include <stdio.h>
#include <string.h>
#include <time.h>

static void hang(void)
{
	volatile int on = 1;

	while (on)
		;
}

static void slow(void)
{
	while (clock() < CLOCKS_PER_SEC * 3 / 20)
		;
}

int main(void)
{
	char text[100];
	size_t size = fread(text, 1, sizeof text, stdin);

	if (memchr(text, 'h', size))
		hang();
	if (size)
		slow();
	return 0;
}
