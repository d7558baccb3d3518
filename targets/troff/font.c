/* The fonts that are mounted, and how wide their characters are.
 *
 * The bug: a font that is not mounted is looked up, and what the look-up found is used unseen; a
 * result that nobody checks is one of the causes that Miller et al. name in their fuzz studies. */
#include <string.h>

#include "../complain.h"
#include "troff.h"

#define LARGEST_SIZE 99
/* The position of the font whose characters are all as wide. */
#define TYPEWRITER 5

static const struct font fonts[] = {{"R", 1, 0}, {"I", 2, -2}, {"B", 3, 4}, {"S", 4, 6}, {"CW", TYPEWRITER, 0}};
static const struct font *font, *font_before;
static int size, size_before;

void font_begin(void)
{
	font = font_before = &fonts[0];
	size = size_before = 10;
}

static const struct font *find_font(struct text name)
{
	for (size_t i = 0; i < sizeof fonts / sizeof *fonts; i++) {
		if (strlen(fonts[i].name) == name.length &&
		    memcmp(fonts[i].name, name.at, name.length) == 0)
			return &fonts[i];
		if (name.length == 1 && *name.at == '0' + fonts[i].position)
			return &fonts[i];
	}
	return NULL;
}

/* Puts a font in place of the current one. */
static __attribute__((noinline)) void change_font(const struct font *new)
{
#ifdef DDFUZZ_FIXED
	if (new == NULL) {
		complain("this font is not mounted");
		return;
	}
#endif
	/* A change to the same font is none: `P` still means the one before. */
	if (new->position != font->position) {
		font_before = font;
		font = new;
	}
}

void set_font(struct text name)
{
	if (name.length == 1 && *name.at == 'P')
		change_font(font_before);
	else if (name.length > 0)
		change_font(find_font(name));
}

const struct font *current_font(void)
{
	return font;
}

void set_size(int points)
{
	int before = size;

	size = points == 0 ? size_before : points;
	size = size < 1 ? 1 : size > LARGEST_SIZE ? LARGEST_SIZE : size;
	size_before = before;
}

int current_size(void)
{
	return size;
}

/* A character's width in the font R, in hundredths of the size. */
static uint8_t plain_width(int character)
{
	if (character == 0 || character >= 128)
		return 60;
	if (strchr("iljtf.,:;'!|I()[]", character) != NULL)
		return 28;
	if (strchr("mwMW@%", character) != NULL)
		return 80;
	if (character >= 'A' && character <= 'Z')
		return 68;
	return character == ' ' ? 25 : 50;
}

int width_of(uint8_t character)
{
	static uint8_t widths[256];

	if (widths[0] == 0)
		for (int c = 0; c < 256; c++)
			widths[c] = plain_width(c);
	if (font->position == TYPEWRITER)
		return 60 * size * POINT / 100;
	return (widths[character] + font->widening) * size * POINT / 100;
}
