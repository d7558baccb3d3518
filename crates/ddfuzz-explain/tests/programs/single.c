#include <stdio.h>
int main(void) { char *text = "x"; int letter = getchar(); if (letter == 'b') text = NULL; printf("%c\n", *text); return 0; }
