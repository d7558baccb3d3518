#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

/* Ends if it is traced, and fails on an x otherwise. */
int main(void)
{
	char letter;

	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		return 0;
	if (read(0, &letter, 1) == 1 && letter == 'x')
		abort();
	return 0;
}
