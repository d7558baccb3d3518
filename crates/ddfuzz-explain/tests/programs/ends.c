#include <stdio.h>
#include <string.h>

/* Whether a letter belongs to a word: a dash does as well, and is forgotten here. */
static int belongs(char c)
{
	int low = c >= 'a';
	return low;
}

static void first_word(const char *line, char *word)
{
	int i;

	for (i = 0; i < 60; i++) {
		if (!belongs(line[i]))
			break;
		word[i] = line[i];
	}
	word[i] = 0;
}

int main(void)
{
	char line[64] = "", word[64];

	while (fgets(line, sizeof line, stdin)) {
		first_word(line, word);
		*strchr(word, 'e') = 'E';
		puts(word);
	}
	return 0;
}
