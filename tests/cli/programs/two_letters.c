/* Crashes if its input has an X and the last letter of `needs`. */
#include <stdio.h>
#include <string.h>

static const char needs[] = "the letters X and Y";

int main(void)
{
	static char text[4096];
	size_t size = fread(text, 1, sizeof text, stdin);
	const volatile char *last = needs + sizeof needs - 2;

	if (memchr(text, 'X', size) && memchr(text, *last, size))
		*(volatile int *)0 = 1;
	return 0;
}
