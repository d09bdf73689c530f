/*
 * Boxes of every layout are copied as a plain loop copies them, on any side of the sizes at which
 * the way changes; nothing around the result is written.
 */
#include "tensor/copy.h"
#include "tensor/threads.h"
#include "tests/asserts.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 5, AROUND = 160 };

static uint64_t random_state = 3;

static int64_t pick(int64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((random_state >> 33) % (uint64_t)n);
}

typedef struct layout {
    size_t element;
    int rank;
    int64_t shape[MOST_RANK], from[MOST_RANK], to[MOST_RANK]; /* strides in elements */
    int64_t from_first, to_first, from_size, to_size;         /* in elements */
} layout;

/* Strides of dimensions in an order drawn at random, one with gaps, backwards; broadcast if `some`.
 */
static void draw_strides(const layout *l, bool some, int64_t *strides, int64_t *first,
                         int64_t *size)
{
    bool done[MOST_RANK] = {0};
    const int apart = pick(3) == 0 ? (int)pick(l->rank) : -1;
    *first = 0;
    *size = 1;
    for (int left = l->rank; left > 0; left--) {
        int d = l->rank - 1;
        if (pick(3) == 0) d = (int)pick(l->rank);
        while (done[d]) d = (d + l->rank - 1) % l->rank;
        done[d] = true;
        strides[d] = some && pick(8) == 0 ? 0 : *size * (d == apart ? 2 : 1);
        if (!strides[d]) continue;
        *size = strides[d] * l->shape[d];
        if (pick(6)) continue;
        *first += strides[d] * (l->shape[d] - 1);
        strides[d] = -strides[d];
    }
}

static layout draw(int64_t bytes)
{
    layout l = {.element = (size_t)1 << pick(4), .rank = 1 + (int)pick(MOST_RANK)};
    int64_t left = bytes / (int64_t)l.element;
    for (int i = l.rank - 1; i >= 0; i--) {
        static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 24, 33, 64, 130};
        int64_t n = i ? extents[pick(13)] : left;
        if (n > left) n = left;
        l.shape[i] = n;
        left /= n;
    }
    draw_strides(&l, true, l.from, &l.from_first, &l.from_size);
    draw_strides(&l, false, l.to, &l.to_first, &l.to_size);
    return l;
}

static void copy_plainly(const layout *l, const char *from, char *to)
{
    int64_t at[MOST_RANK] = {0};
    for (;;) {
        int64_t a = l->from_first, b = l->to_first;
        for (int i = 0; i < l->rank; i++) a += at[i] * l->from[i], b += at[i] * l->to[i];
        memcpy(to + b * (int64_t)l->element, from + a * (int64_t)l->element, l->element);
        int d = l->rank - 1;
        while (d >= 0 && ++at[d] == l->shape[d]) at[d--] = 0;
        if (d < 0) break;
    }
}

/* The result and what is around it, beginning at any element of a line. */
static void check(int64_t bytes)
{
    const layout l = draw(bytes);
    const int64_t size = (int64_t)l.element, shift = pick(64 / size) * size;
    const size_t room = (size_t)(l.to_size * size + 2 * AROUND + shift);
    char *from = malloc((size_t)(l.from_size * size)), *to = malloc(room), *want = malloc(room);
    assert_true(from && to && want);
    for (int64_t i = 0; i < l.from_size * size; i++) from[i] = (char)pick(256);
    memset(to, 77, room);
    memset(want, 77, room);
    copy_plainly(&l, from, want + AROUND + shift);
    copy_box(l.element, l.rank, l.shape, from + l.from_first * size, l.from,
             to + AROUND + shift + l.to_first * size, l.to);
    if (memcmp(to, want, room) != 0) {
        char text[256] = "";
        for (int i = 0; i < l.rank; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %lld(%lld, %lld)",
                     (long long)l.shape[i], (long long)l.from[i], (long long)l.to[i]);
        fail_msg("elements of %zu bytes, extents (strides from, to):%s", l.element, text);
    }
    free(from);
    free(to);
    free(want);
}

static void boxes(void **state)
{
    (void)state;
    for (int i = 0; i < 4000; i++) check(8 + pick(20000));
    for (int i = 0; i < 60; i++) check(300000 + pick(600000));
}

/* 16 MB and more: past the caches. */
static void large_boxes(void **state)
{
    (void)state;
    for (int i = 0; i < 24; i++) check((17 << 20) + pick(8 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(boxes), cmocka_unit_test(large_boxes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
