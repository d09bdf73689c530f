/*
 * Handwritten digits for programs that have no MNIST at hand: 28 x 28 pixels, drawn from a seed,
 * the same on every machine.
 *
 * A digit is written like a person does: along strokes. The table below has some ways of writing
 * each one; points are pairs of letters (x, y) on a grid of 21 x 21 with 'a' = 0, in the order of
 * the pen, a comma lifts the pen, a doubled point makes a corner. A writer's hand is made of random
 * numbers: every point moves a little, the whole is slanted, turned, stretched and shifted, the pen
 * has a width that changes on the way, the paper has some grain. A smooth curve (Catmull and Rom's)
 * goes through the points in short straight pieces; a pixel is as dark as the pen covers it, and
 * only pixels around a piece are looked at.
 *
 * Nothing here depends on a machine's mathematical library: plain float arithmetic, and the square
 * root that IEEE 754 defines to the last bit.
 */
#include "examples/digits.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 28, MOST_POINTS = 24, PIECES = 4 };

static const char *const ways[10][4] = {
    {"ka fd dk fr ku pr rk pd ka", "ma gc ek hs ku os qk od ka ib", "kb ge gk gq kt oq ok oe kb ic",
     "nb id fi eo hu mt qn qh ob kc"},
    {"ka ku", "gd ka ka ku", "gd ka ka ku, gu ou", "ma kk iu"},
    {"ef gb ka oc pg ml hq eu eu ku qu", "ee ia oc oi jp ft er hq ls qt",
     "dd hb ma pe nj ip du du jt ru", "fe jb nc og lm fs eu hs mu rt"},
    {"ed ia ob pf ni jj jj ol qp nt iu er", "ea pa pa ji ji om qq mu gu dr",
     "fc kb nd mh ij hj lk on nr ju et", "eb lb oe kj gj gj mk pp lu ft"},
    {"ga ei em em rm, nd nu", "ma dn dn rn, ma mu", "fa fk fk qk, ob mu",
     "hb fg hk mk ph, qb ph on mu"},
    {"pa ga ga fj fj kh pk qo nt iu er", "ga fj kh pk qo nt iu er, ga qa",
     "qb hb hb gi gi mi oo lt fu", "hb gi li pm ns iu es, hb pa"},
    {"na hf em fs ku ps pn lk gm fq", "la gg eo gt lu ps qo nl ik fo", "ib gh fo ht mu po mk hm gq",
     "pb kc gi eq it nt pp nm im fq"},
    {"ea qa qa ku", "ea qa qa nh ju, hk qk", "ed ea pa pa lj ju", "fc jb pc ph lo iu"},
    {"od ka gd ii ml pp mu iu fq il mi oe", "ka ge kj oe ka, kj fo ku po kj",
     "pb kb gf lj po ku fp jk ne pc", "kb he kj ne kb, kj gp lu op kj"},
    {"pf lj gi fe ja ob pf pm nu", "of kj fh gb la oe ol lt fs", "pc ka gd hi mj pd pd pk ou",
     "od kb gf jk oh pd ol ku"},
};

/* ---- Randomness: splitmix64 ------------------------------------------------------------------ */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static float between(uint64_t *state, float lo, float hi)
{
    return lo + (hi - lo) * ((float)(int32_t)(next(state) >> 40) * 0x1p-24f);
}

/* Between -size and size, mostly near 0. */
static float around(uint64_t *state, float size)
{
    return (between(state, -size, size) + between(state, -size, size)) * 0.5f +
           between(state, -size, size) * 0.25f;
}

/* ---- The pen --------------------------------------------------------------------------------- */

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

struct point {
    float x, y;
};

/* What a hand does to all points: x' = xx x + xy y + x0, and so for y; grid
 * coordinates to pixels. */
struct hand {
    float xx, xy, x0, yx, yy, y0;
    float wobble;       /* how far a point strays, in grid units */
    float width, swing; /* of the pen in pixels, and how much it changes */
};

static struct hand some_hand(uint64_t *state)
{
    float turn = around(state, 0.5f), shear = around(state, 0.6f) + 0.08f, t2 = turn * turn;
    float sine = turn * (1 - t2 / 6), cosine = 1 - t2 / 2 + t2 * t2 / 24;
    float tall = between(state, 0.74f, 1.06f), wide = tall * between(state, 0.62f, 1.12f);
    struct hand hand;
    hand.xx = cosine * wide;
    hand.xy = -(sine + shear * cosine) * tall;
    hand.yx = sine * wide;
    hand.yy = (cosine - shear * sine) * tall;
    /* The middle of the grid lands near the middle of the picture. */
    hand.x0 = 13.5f + around(state, 4) - 10 * (hand.xx + hand.xy);
    hand.y0 = 13.5f + around(state, 4) - 10 * (hand.yx + hand.yy);
    hand.wobble = between(state, 0.5f, 2.4f);
    hand.width = between(state, 0.65f, 1.7f);
    hand.swing = between(state, -0.3f, 0.3f);
    return hand;
}

/* Darkens the pixels around the piece from a to b as far as a round pen of
 * the radius covers them. */
static void line(float ink[SIDE * SIDE], struct point a, struct point b, float radius)
{
    float reach = radius + 0.5f, dx = b.x - a.x, dy = b.y - a.y;
    float length2 = dx * dx + dy * dy, scale = length2 > 0 ? 1 / length2 : 0;
    int left = (int)larger(0, smaller(a.x, b.x) - reach);
    int right = (int)smaller(SIDE - 1, larger(a.x, b.x) + reach);
    int top = (int)larger(0, smaller(a.y, b.y) - reach);
    int bottom = (int)smaller(SIDE - 1, larger(a.y, b.y) + reach);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            float px = (float)x - a.x, py = (float)y - a.y;
            float along = larger(0, smaller(1, (px * dx + py * dy) * scale));
            float ex = px - along * dx, ey = py - along * dy;
            float far2 = ex * ex + ey * ey, *pixel = &ink[y * SIDE + x];
            if (far2 >= reach * reach || *pixel == 1) continue;
            *pixel = larger(*pixel, smaller(1, reach - sqrtf(far2)));
        }
}

/* A point of the curve through p[1] and p[2], t of the way between them. */
static struct point curve(const struct point p[4], float t)
{
    float a = t * (-0.5f + t * (1 - 0.5f * t)), b = 1 + t * t * (-2.5f + 1.5f * t);
    float c = t * (0.5f + t * (2 - 1.5f * t)), d = t * t * (-0.5f + 0.5f * t);
    return (struct point){a * p[0].x + b * p[1].x + c * p[2].x + d * p[3].x,
                          a * p[0].y + b * p[1].y + c * p[2].y + d * p[3].y};
}

static void stroke(float ink[SIDE * SIDE], const struct hand *hand, int n, struct point *p)
{
    struct point last = p[1]; /* p[0] and p[n + 1] are there for the curve's ends */
    p[0] = p[1];
    p[n + 1] = p[n];
    for (int i = 0; i + 1 < n; i++)
        for (int j = 1; j <= PIECES; j++) {
            float t = (float)j / PIECES, way = ((float)i + t) / (float)n;
            struct point to = curve(p + i, t);
            line(ink, last, to, hand->width * (1 + hand->swing * (1 - 4 * way * (1 - way))));
            last = to;
        }
}

static void write_strokes(float ink[SIDE * SIDE], const struct hand *hand, const char *way,
                          uint64_t *state)
{
    struct point points[MOST_POINTS + 2];
    struct point shift = {0, 0};
    int n = 0;
    for (;; way++) {
        if (*way == ' ') continue;
        if (*way == ',' || !*way) {
            stroke(ink, hand, n, points);
            if (!*way) return;
            n = 0;
            continue;
        }
        float x = (float)(way[0] - 'a'), y = (float)(way[1] - 'a');
        if (n == 0 || way[0] != way[-3] ||
            way[1] != way[-2]) /* a corner's two points move together */
            shift = (struct point){around(state, hand->wobble), around(state, hand->wobble)};
        x += shift.x;
        y += shift.y;
        points[++n] = (struct point){hand->xx * x + hand->xy * y + hand->x0,
                                     hand->yx * x + hand->yy * y + hand->y0};
        way++;
    }
}

/* Draws the label, 0 ... 9, with the random numbers of *state. */
static void draw_digit(uint8_t pixels[SIDE * SIDE], int label, uint64_t *state)
{
    float ink[SIDE * SIDE];
    struct hand hand = some_hand(state);
    memset(ink, 0, sizeof ink);
    write_strokes(ink, &hand, ways[label][next(state) >> 62], state);

    /* In steps of 1/256 of a grey. */
    float strength = 256 * between(state, 160, 255);
    int grain = (int)between(state, 0, 36);
    for (int i = 0; i < SIDE * SIDE; i += 4) {
        uint64_t bits = next(state);
        for (int j = 0; j < 4; j++) {
            int noise = ((int)(bits >> 16 * j & 0xffff) - 0x8000) * grain / 128;
            int value = (int)(ink[i + j] * strength) + noise;
            value &= ~(value >> 31); /* not below 0 */
            pixels[i + j] = (uint8_t)((value > 0xffff ? 0xffff : value) >> 8);
        }
    }
}

/* ---- Many of them ---------------------------------------------------------------------------- */

static void release(void *data, void *user)
{
    (void)user;
    free(data);
}

ed_tensor *draw_digits(int64_t count, uint64_t seed, ed_tensor **labels)
{
    uint8_t *pixels = malloc((size_t)count * SIDE * SIDE);
    int32_t *numbers = malloc((size_t)count * sizeof *numbers);
    *labels = NULL;
    if (!pixels || !numbers) {
        free(pixels), free(numbers);
        return ed_fail(ED_OUT_OF_MEMORY, "draw_digits: out of memory");
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t state = seed * 0xd1342543de82ef95 + (uint64_t)i * 0xaef17502108ef2d9;
        state = next(&state); /* digits that follow each other have nothing in common */
        numbers[i] = (int32_t)(next(&state) % 10);
        draw_digit(pixels + i * SIDE * SIDE, numbers[i], &state);
    }
    *labels = ed_wrap(ED_INT32, numbers, ED_SHAPE(count), release, NULL);
    ed_tensor *pictures = ed_wrap(ED_UINT8, pixels, ED_SHAPE(count, SIDE, SIDE), release, NULL);
    if (!*labels) free(numbers);
    if (!pictures) free(pixels);
    return pictures;
}

ed_tensor *draw_images(int64_t count, uint64_t seed)
{
    ed_tensor *labels, *drawn = draw_digits(count, seed, &labels);
    return ed_reshape(ed_div(ed_cast(drawn, ED_FLOAT32), 255), ED_SHAPE(count, SIDE * SIDE));
}

/* Prints a line without the blanks at its end. */
static void put_line(FILE *file, char *line)
{
    size_t length = strlen(line);
    while (length && line[length - 1] == ' ') length--;
    fprintf(file, "%.*s\n", (int)length, line);
}

/* Two rows of pixels to a line, for letters are twice as high as wide; margins are left out. */
void show_digits(FILE *file, const float *pictures, int count, const char *const *captions)
{
    enum { ACROSS = 3, MARGIN = 3, WIDE = SIDE - 2 * MARGIN, COLUMN = WIDE + 3 };
    static const char shades[] = " .:-=+*#%@";
    for (int first = 0; first < count; first += ACROSS) {
        int n = count - first < ACROSS ? count - first : ACROSS;
        char line[ACROSS * COLUMN + 1];
        for (int y = MARGIN; y + 1 < SIDE - MARGIN; y += 2) {
            memset(line, ' ', sizeof line);
            for (int i = 0; i < n; i++)
                for (int x = 0; x < WIDE; x++) {
                    const float *p = pictures + ((first + i) * SIDE + y) * SIDE + MARGIN + x;
                    line[i * COLUMN + x] = shades[(int)((p[0] + p[SIDE]) / 2 * 9.99f)];
                }
            line[n * COLUMN] = 0;
            put_line(file, line);
        }
        for (int i = 0; i < n; i++)
            snprintf(line + i * COLUMN, COLUMN + 1, "%-*s", COLUMN, captions[first + i]);
        put_line(file, line);
        fputc('\n', file);
    }
}
