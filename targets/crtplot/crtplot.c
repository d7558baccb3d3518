/* crtplot: draws plot commands on a character screen.
 *
 *   s X0 Y0 X1 Y1   the plotting space: its lower left and upper right corner (0 0 79 23)
 *   m X Y           move to a point            n X Y     draw a line on to a point
 *   p X Y           a point                    l X0 Y0 X1 Y1   a line
 *   c X Y R         a circle                   t TEXT    a label, up to the end of the line
 *   f MODE          lines are solid, dotted or shortdashed    e   erase the screen
 *   # TEXT          a comment, up to the end of the line
 *
 * The bug (after the fuzz studies of Miller et al.; for Hildebrandt and Zeller, ISSTA 2000, 10^6
 * characters came down to one): labels are drawn with the device's character generator, and this device
 * has none. The letter `t` is enough. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "../complain.h"
#include "../target.h"

#define COLUMNS 80
#define ROWS 24
#define FARTHEST 32767

/* How a device that draws its letters itself shapes them. */
struct charset {
	int height;
	int width;
	const char *shapes;
};

/* An output device. */
struct device {
	int columns;
	int rows;
	const struct charset *charset;
};

struct point {
	int x, y;
};

static const struct device crt = {COLUMNS, ROWS, NULL};

static const uint8_t *input;
static size_t input_size, at;
static char screen[ROWS][COLUMNS];
static int drawn;
static struct point here, low, high;
static int dash;

static void erase(void)
{
	memset(screen, ' ', sizeof screen);
	drawn = 0;
}

static void set_cell(struct point cell, char mark)
{
	if (cell.x < 0 || cell.x >= crt.columns || cell.y < 0 || cell.y >= crt.rows)
		return;
	screen[crt.rows - 1 - cell.y][cell.x] = mark;
	drawn = 1;
}

/* Scales `value` of the space [from, to], not empty, to 0 … cells − 1, rounding to the nearest. */
static int scale(int value, int from, int to, int cells)
{
	long span = (long)to - from, distance = (long)value - from;

	if (span < 0) {
		span = -span;
		distance = -distance;
	}
	distance = 2 * distance * (cells - 1) + span;
	span *= 2;
	/* Division must round downwards, or what lies left of the screen is drawn in column 0. */
	return (int)(distance >= 0 ? distance / span : -((-distance + span - 1) / span));
}

static struct point to_cell(struct point p)
{
	struct point cell = {
		scale(p.x, low.x, high.x, crt.columns),
		scale(p.y, low.y, high.y, crt.rows),
	};

	return cell;
}

/* Cuts the line off at the border `value` of one axis, when one end is beyond it. */
static void cut_at(int *a, int *other_a, int b, int other_b, int border)
{
	*other_a += (int)((long)(other_b - *other_a) * (border - *a) / (b - *a));
	*a = border;
}

/* Cuts a line to the screen on one axis; 0 when nothing is left of it. */
static int clip(int *a, int *other_a, int *b, int *other_b, int border)
{
	if ((*a < 0 && *b < 0) || (*a > border && *b > border))
		return 0;
	if (*a < 0)
		cut_at(a, other_a, *b, *other_b, 0);
	else if (*a > border)
		cut_at(a, other_a, *b, *other_b, border);
	if (*b < 0)
		cut_at(b, other_b, *a, *other_a, 0);
	else if (*b > border)
		cut_at(b, other_b, *a, *other_a, border);
	return 1;
}

static int distance(int a, int b)
{
	return a < b ? b - a : a - b;
}

/* Draws a line between two points of the plotting space. */
static void draw_line(struct point from, struct point to)
{
	struct point a = to_cell(from), b = to_cell(to);
	int steps;

	if (!clip(&a.x, &a.y, &b.x, &b.y, crt.columns - 1) ||
	    !clip(&a.y, &a.x, &b.y, &b.x, crt.rows - 1))
		return;
	steps = distance(a.x, b.x);
	if (distance(a.y, b.y) > steps)
		steps = distance(a.y, b.y);
	for (int i = 0; i <= steps; i++) {
		struct point cell = a;

		if (dash > 0 && i / dash % 2 == 1)
			continue;
		if (steps > 0) {
			cell.x += (2 * (b.x - a.x) * i + (b.x < a.x ? -steps : steps)) / (2 * steps);
			cell.y += (2 * (b.y - a.y) * i + (b.y < a.y ? -steps : steps)) / (2 * steps);
		}
		set_cell(cell, '*');
	}
}

static void draw_octants(struct point centre, int dx, int dy)
{
	for (int corner = 0; corner < 4; corner++) {
		int sx = corner & 1 ? -1 : 1, sy = corner & 2 ? -1 : 1;
		struct point flat = {centre.x + sx * dx, centre.y + sy * dy};
		struct point steep = {centre.x + sx * dy, centre.y + sy * dx};

		set_cell(flat, '*');
		set_cell(steep, '*');
	}
}

/* Draws a circle; its radius is measured along the x axis. */
static void draw_circle(struct point centre, int radius)
{
	struct point middle = to_cell(centre), rim = centre;
	int x, y = 0, error;

	rim.x = centre.x + radius;
	x = distance(to_cell(rim).x, middle.x);
	if (x > 4 * COLUMNS)
		return;
	error = 1 - x;
	while (x >= y) {
		draw_octants(middle, x, y);
		y++;
		error += error < 0 ? 2 * y + 1 : 2 * (y - --x) + 1;
	}
}

/* The label up to the end of the line, its lower left corner at the current point. */
static __attribute__((noinline)) void draw_label(void)
{
	const struct charset *charset = crt.charset;
	struct point cell = to_cell(here);

#ifdef DDFUZZ_FIXED
	/* A device without a character generator shows letters as they are. */
	static const struct charset plain = {1, 1, NULL};
	if (charset == NULL)
		charset = &plain;
#endif
	cell.y += charset->height - 1;
	for (; at < input_size && input[at] != '\n'; at++) {
		uint8_t c = input[at];

		if (c >= ' ' && c <= '~')
			set_cell(cell, (char)c);
		cell.x += charset->width;
		if (cell.x > crt.columns)
			cell.x = crt.columns;
	}
}

static int is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == ',' || c == '\n' || c == '\r';
}

/* Reads a number; 0 when there is none. Too large ones are cut to the farthest coordinate. */
static int read_number(int *number)
{
	int sign = 1;
	size_t first;

	while (at < input_size && is_blank(input[at]))
		at++;
	if (at + 1 < input_size && input[at] == '-') {
		sign = -1;
		at++;
	}
	*number = 0;
	for (first = at; at < input_size && input[at] >= '0' && input[at] <= '9'; at++)
		if (*number < FARTHEST)
			*number = *number * 10 + (input[at] - '0');
	if (*number > FARTHEST)
		*number = FARTHEST;
	*number *= sign;
	return at > first;
}

static int read_point(struct point *p)
{
	return read_number(&p->x) && read_number(&p->y);
}

static void skip_line(void)
{
	const uint8_t *end = memchr(input + at, '\n', input_size - at);

	at = end == NULL ? input_size : (size_t)(end - input);
}

static int set_line_mode(void)
{
	static const struct {
		const char *name;
		int dash;
	} modes[] = {{"solid", 0}, {"dotted", 1}, {"shortdashed", 3}};
	size_t first;

	while (at < input_size && input[at] == ' ')
		at++;
	first = at;
	while (at < input_size && input[at] >= 'a' && input[at] <= 'z')
		at++;
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		if (strlen(modes[i].name) == at - first &&
		    memcmp(modes[i].name, input + first, at - first) == 0) {
			dash = modes[i].dash;
			return 1;
		}
	}
	return 0;
}

/* Does one command; 0 when its arguments are wrong. */
static int command(uint8_t letter)
{
	struct point a, b;
	int radius;

	switch (letter) {
	case 's':
		if (!read_point(&a) || !read_point(&b) || a.x == b.x || a.y == b.y)
			return 0;
		low = a;
		high = b;
		return 1;
	case 'm':
		return read_point(&here);
	case 'n':
		a = here;
		if (!read_point(&here))
			return 0;
		draw_line(a, here);
		return 1;
	case 'l':
		if (!read_point(&a) || !read_point(&here))
			return 0;
		draw_line(a, here);
		return 1;
	case 'p':
		if (!read_point(&here))
			return 0;
		set_cell(to_cell(here), '*');
		return 1;
	case 'c':
		if (!read_point(&here) || !read_number(&radius))
			return 0;
		draw_circle(here, distance(radius, 0));
		return 1;
	case 'f':
		return set_line_mode();
	case 't':
		draw_label();
		return 1;
	case 'e':
		erase();
		return 1;
	case '#':
		skip_line();
		return 1;
	default:
		return 0;
	}
}

/* Writes the screen without the blanks at the ends of lines. */
static void show_screen(void)
{
	for (int row = 0; row < ROWS; row++) {
		int width = COLUMNS;

		while (width > 0 && screen[row][width - 1] == ' ')
			width--;
		fwrite(screen[row], 1, (size_t)width, stdout);
		putchar_unlocked('\n');
	}
}

int target_main(const uint8_t *data, size_t size)
{
	complain_as("crtplot");
	input = data;
	input_size = size;
	at = 0;
	dash = 0;
	here = low = (struct point){0, 0};
	high = (struct point){COLUMNS - 1, ROWS - 1};
	erase();
	while (at < size) {
		size_t start = at;
		uint8_t letter = data[at++];

		if (!is_blank(letter) && !command(letter))
			complain("byte %zu: bad command", start);
	}
	if (drawn)
		show_screen();
	return complaints() > 0;
}
