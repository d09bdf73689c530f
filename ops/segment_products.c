/*
 * The gradient of products of segments: each slice gets dy of its segment times the product of the
 * other slices. The ids are sorted for that.
 */
#include "ops/index.h"
#include "ops/ops.h"
#include "ops/segments.h"

/* x [n, ...] moved on by `apart` slices, or back, within the segments of sorted ids; ones come
 * in. */
static ed_tensor *moved_within(ed_tensor *x, ed_tensor *ids, int64_t apart, bool back)
{
    if (!x || !ids) return NULL;
    const int rank = ed_rank(x);
    int64_t ones[ED_MAX_RANK], none[ED_MAX_RANK] = {0}, by[ED_MAX_RANK] = {apart};
    int64_t begin[ED_MAX_RANK] = {back ? apart : 0}, end[ED_MAX_RANK];
    for (int d = 0; d < rank; d++) ones[d] = 1, end[d] = ed_dim(x, d);
    ones[0] = end[0];
    if (!back) end[0] -= apart;
    const ed_ints before = {back ? none : by, rank}, after = {back ? by : none, rank};
    ed_tensor *moved = ed_pad(ed_slice(x, .begin = {begin, rank}, .end = {end, rank}),
                              .before = before, .after = after);
    ed_tensor *there =
        ed_pad(ed_slice(ids, .begin = {begin, 1}, .end = {end, 1}), .before = {before.values, 1},
               .after = {after.values, 1}, .value = -2);
    return ed_where(ed_reshape(ed_equal(ids, there), ((ed_ints){ones, rank})), moved, 1);
}

/*
 * The product of all slices before each in its segment, or after each: of the one before, then of
 * 2, 4, 8, ... Nothing is divided, so zeros do no harm, in gradients of any order either.
 */
static ed_tensor *products_beside(ed_tensor *x, ed_tensor *ids, int64_t longest, bool back)
{
    if (longest < 2) return ed_ones_like(x);
    x = moved_within(x, ids, 1, back);
    for (int64_t have = 1; x && have < longest - 1; have *= 2)
        x = ed_mul(x, moved_within(x, ids, have, back));
    return x;
}

/* The most neighbours with the same id; 0 on failure. */
static int64_t longest_run(const ed_tensor *ids)
{
    int64_t longest = 0, run = 0;
    for (int64_t i = 0; ids && i < ids->size; i++) {
        run = i && index_at(ids, i) == index_at(ids, i - 1) ? run + 1 : 1;
        if (run > longest) longest = run;
    }
    return longest;
}

bool segment_products_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    const ed_ints shape = g->shapes[0], of_ids = g->shapes[1];
    const int64_t rest = shape.count - of_ids.count;
    int64_t flat[ED_MAX_RANK + 1], ones[ED_MAX_RANK + 1];
    flat[0] = ones[0] = index_product(of_ids.values, 0, (int)of_ids.count);
    for (int64_t d = 0; d < rest; d++)
        flat[d + 1] = shape.values[of_ids.count + d], ones[d + 1] = 1;
    ed_tensor *ids = ed_maximum(ed_flatten(g->inputs[1]), -1), *order = ed_argsort(ids);
    ids = ed_gather(ids, order);
    ed_tensor *x = ed_gather(ed_reshape(g->inputs[0], ((ed_ints){flat, rest + 1})), order);
    ed_tensor *counts = ed_reshape(ed_greater_equal(ids, 0), ((ed_ints){ones, rest + 1}));
    x = ed_where(counts, x, 1);
    const int64_t longest = longest_run(ids);
    ed_tensor *others =
        ed_mul(products_beside(x, ids, longest, false), products_beside(x, ids, longest, true));
    others = ed_reshape(ed_gather(others, ed_invert_permutation(order)), shape);
    g->dx[0] = ed_keep(ed_mul(others, segment_slices(g->dy[0], g->inputs[1])));
    return true;
}
