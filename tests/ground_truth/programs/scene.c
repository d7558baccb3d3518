/* Draws scenes: one command a line puts shapes on layers, others draw them. What draws is called
 * from many places, and far below them. */
#define _GNU_SOURCE
#include "ground.h"
#include <assert.h>

struct style { char *name; int color, width; };
struct font { int height, widths[128]; };
struct shape {
    char kind[12];
    long x, y, size;
    char text[64];
    struct style *style;
    struct font *font;
    long *points;
    void (*shade)(struct shape *);
    struct shape *inner, *next;
};
struct layer { char name[16]; struct shape *shapes; struct layer *next; };
struct canvas { int width, height; unsigned char *pixels; };

static struct layer *layers;
static struct font plain_font = {12, {0}};
static const int palette[16] = {1, 2, 3, 4};
static struct canvas canvas;
static volatile long ink;

static __attribute__((noinline)) void draw_text(struct shape *shape)
{
    if (!shape->font)
        canary("font-not-loaded");
    long width = shape->font->height;
    for (const char *at = shape->text; *at; at++)
        width += shape->font->widths[*at & 127];
    ink += width;
}

static __attribute__((noinline)) void draw_circle(struct shape *shape)
{
    if (shape->size == 0)
        canary("circle-without-radius");
    long step = 360 / shape->size;
    for (long angle = 0; angle < 360; angle += step + 1)
        ink += angle;
}

static __attribute__((noinline)) int color_of(struct shape *shape)
{
    long color = strtol(shape->text, NULL, 10);
    if (color < 0 || color > 15)
        canary("color-not-in-palette");
    return palette[color];
}

static __attribute__((noinline)) void draw_filled(struct shape *shape)
{
    ink += color_of(shape) * shape->size;
    ink++;
}

static __attribute__((noinline)) long center_of(struct shape *shape)
{
    long sum = 0;
    if (!shape->points)
        canary("polygon-without-points");
    for (int i = 0; i < 4; i++)
        sum += shape->points[i];
    return sum / 4;
}

static __attribute__((noinline)) void draw_polygon(struct shape *shape)
{
    ink += center_of(shape);
    ink++;
}

static __attribute__((noinline)) void label_of(struct shape *shape, const char *unit)
{
    char label[40];
    if (strlen(shape->text) + strlen(unit) + 3 > sizeof label)
        canary("label-too-long");
    char *at = label;
    for (const char *from = shape->text; *from; from++)
        *at++ = *from;
    *at++ = ' ';
    strcpy(at, unit);
    ink += label[0];
    printf("%.10s\n", label);
}

static __attribute__((noinline)) void draw_ruler(struct shape *shape)
{
    label_of(shape, "millimetres");
    ink++;
}

static __attribute__((noinline)) void draw_box(struct shape *shape)
{
    if (shape->size < 0)
        canary("box-of-negative-size");
    assert(shape->size >= 0);
    ink += shape->size * shape->size;
}

static __attribute__((noinline)) long extent(struct shape *shape, int below)
{
    char path[100];
    if (below == 2000)
        canary("group-inside-itself");
    snprintf(path, sizeof path, "%s %d", shape->text, below);
    return shape->inner ? extent(shape->inner, below + 1) + path[0] : 1;
}

static __attribute__((noinline)) void draw_group(struct shape *shape)
{
    ink += extent(shape, 0);
    ink++;
}

static __attribute__((noinline)) void draw_image(struct shape *shape)
{
    unsigned char *row = malloc(4096);
    memset(row, 1, 4096);
    if (shape->size > 64)
        canary("image-larger-than-its-data");
    unsigned char *copy = malloc(16 << 20);
    if (shape->size > 0 && shape->size < 4000)
        memcpy(copy, row, (size_t)shape->size * 4096);
    ink += copy[shape->size & 1023];
    free(copy);
    free(row);
}

static __attribute__((noinline)) void draw_styled(struct shape *shape)
{
    if (!shape->style || !shape->style->name)
        canary("style-without-name");
    ink += strcmp(shape->style->name, shape->text) ? 1 : 2;
    ink++;
}

static __attribute__((noinline)) void draw_shaded(struct shape *shape)
{
    if (!shape->shade)
        canary("shader-not-compiled");
    shape->shade(shape);
    ink++;
}

static __attribute__((noinline)) void draw_point(struct shape *shape)
{
    if (shape->y >= canvas.height || shape->y < 0)
        canary("point-outside-of-canvas");
    canvas.pixels[shape->y * canvas.width + (shape->x & 63)] = (unsigned char)shape->size;
    ink++;
}

static __attribute__((noinline)) int blend(struct shape *shape)
{
    if (!strcmp(shape->text, "over"))
        return 1;
    if (!strcmp(shape->text, "under"))
        return 2;
    canary("blend-mode-not-known");
    abort();
}

static __attribute__((noinline)) void draw_blended(struct shape *shape)
{
    ink += blend(shape);
    ink++;
}

static __attribute__((noinline)) void draw_path(struct shape *shape)
{
    for (const char *at = shape->text; *at; at++)
        switch (*at) {
        case 'm': ink += 1; break;
        case 'l': ink += 2; break;
        case 'z': ink += 3; break;
        default: canary("path-operator-not-known"); __builtin_trap();
        }
}

static const struct { const char *kind; void (*draw)(struct shape *); } drawers[] = {
    {"text", draw_text}, {"circle", draw_circle}, {"filled", draw_filled}, {"polygon", draw_polygon},
    {"ruler", draw_ruler}, {"box", draw_box}, {"group", draw_group}, {"image", draw_image},
    {"styled", draw_styled}, {"shaded", draw_shaded}, {"point", draw_point}, {"blended", draw_blended},
    {"path", draw_path},
};

static __attribute__((noinline)) void draw_shape(struct shape *shape)
{
    for (size_t i = 0; i < sizeof drawers / sizeof *drawers; i++)
        if (!strcmp(drawers[i].kind, shape->kind))
            drawers[i].draw(shape);
    ink++;
}

static __attribute__((noinline)) void draw_layer(struct layer *layer)
{
    for (struct shape *at = layer->shapes; at; at = at->next)
        draw_shape(at);
    ink++;
}

static __attribute__((noinline)) void draw_scene(int scale)
{
    canvas.width = canvas.height = 64;
    canvas.pixels = calloc(64, 64);
    for (struct layer *at = layers; at; at = at->next)
        draw_layer(at);
    free(canvas.pixels);
    ink += scale;
}

static __attribute__((noinline)) void render(void) { draw_scene(1); ink++; }
static __attribute__((noinline)) void write_page(int page) { draw_scene(page); ink--; }
static __attribute__((noinline)) void export(int pages)
{
    for (int page = 1; page <= pages; page++)
        write_page(page);
    puts("exported");
}
static __attribute__((noinline)) void thumbnail(void) { draw_scene(-1); ink += 2; }
static __attribute__((noinline)) void preview(void) { thumbnail(); puts("previewed"); }

static __attribute__((noinline)) void free_style(struct style *style, int shared)
{
    if (shared)
        canary("style-shared-by-clones");
    free(style->name);
    free(style);
    ink++;
}

static __attribute__((noinline)) void free_shapes(struct shape *at)
{
    struct style *last = NULL;
    for (struct shape *next; at; at = next) {
        next = at->next;
        if (at->style) {
            int shared = at->style == last;
            last = at->style;
            free_style(at->style, shared);
        }
        free(at);
    }
    ink++;
}

static __attribute__((noinline)) void free_layers(void)
{
    for (struct layer *next; layers; layers = next) {
        next = layers->next;
        free_shapes(layers->shapes);
        free(layers);
    }
}

static __attribute__((noinline)) void clear(const char *name)
{
    for (struct layer *at = layers; at; at = at->next)
        if (!strcmp(at->name, name)) {
            free_shapes(at->shapes);
            at->shapes = NULL;
        }
    ink++;
}

static void put(const char *line)
{
    struct shape *shape = calloc(1, sizeof *shape);
    sscanf(line, "%*s %11s %ld %ld %ld %63s", shape->kind, &shape->x, &shape->y, &shape->size, shape->text);
    if (shape->x == 77) {
        shape->font = &plain_font;
        shape->points = calloc(4, sizeof *shape->points);
        shape->shade = draw_circle;
    }
    if (!strcmp(shape->kind, "group"))
        shape->inner = shape->x == 1 ? shape : NULL;
    if (!strcmp(shape->kind, "styled") || !strcmp(shape->kind, "clone")) {
        shape->style = calloc(1, sizeof *shape->style);
        shape->style->name = shape->x == 1 ? NULL : strdup(shape->text);
    }
    if (!strcmp(shape->kind, "clone") && layers->shapes && layers->shapes->style)
        shape->style = layers->shapes->style;
    shape->next = layers->shapes;
    layers->shapes = shape;
}

static void layer(const char *name)
{
    struct layer *new = calloc(1, sizeof *new);
    snprintf(new->name, sizeof new->name, "%s", name);
    new->next = layers;
    layers = new;
}

int main(void)
{
    char *text = slurp(NULL), *line;
    layer("base");
    while ((line = strsep(&text, "\n"))) {
        char word[12] = "", rest[32] = "";
        sscanf(line, "%11s %31s", word, rest);
        if (!strcmp(word, "put"))
            put(line);
        else if (!strcmp(word, "layer"))
            layer(rest);
        else if (!strcmp(word, "render"))
            render();
        else if (!strcmp(word, "export"))
            export(atoi(rest) & 7);
        else if (!strcmp(word, "preview"))
            preview();
        else if (!strcmp(word, "clear"))
            clear(rest);
    }
    free_layers();
    return 0;
}
