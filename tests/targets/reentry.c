/* Calls a target's entry for each input on stdin: four bytes of its length, the lowest first, and
 * the input. After each the status is written. */
#include <stdio.h>
#include <stdlib.h>

#include "target.h"

int main(void)
{
	unsigned char length[4];

	while (fread(length, 1, 4, stdin) == 4) {
		size_t size = length[0] | length[1] << 8 | length[2] << 16 | (size_t)length[3] << 24;
		uint8_t *data = malloc(size > 0 ? size : 1);

		if (data == NULL || fread(data, 1, size, stdin) != size)
			return 1;
		printf("\n= %d\n", target_main(data, size));
		free(data);
	}
	return 0;
}
