/* Keys of a line's elements, and moving these, for one type. */

#include "ops/select.typed.h"

static void TYPED(partition_keys)(const partition_work *w, int64_t begin, uint64_t *keys)
{
    const NUMBER *x = (const NUMBER *)w->x->data + begin;
    for (int64_t i = 0; i < w->n; i++) keys[i] = TYPED(select_key)(x[i * w->stride]);
}

/* Each element, or its index, to its side of the one with the key, of which `equal` ones with the
 * same key come first. Without branches, which nobody could foresee. */
static void TYPED(partition_spread)(const partition_work *w, int64_t begin, const uint64_t *keys,
                                    uint64_t key, int64_t equal)
{
    const NUMBER *x = (const NUMBER *)w->x->data + begin;
    NUMBER *y = (NUMBER *)w->y + (w->indices ? 0 : begin);
    int64_t *indices = (int64_t *)w->y + (w->indices ? begin : 0);
    int64_t before = 0, after = w->kth + 1;
    for (int64_t i = 0; i < w->n; i++) {
        const bool same = keys[i] == key, below = (keys[i] < key) | (same & (equal > 0)),
                   here = same & (equal == 0); /* once */
        const int64_t side = after ^ ((after ^ before) & -(int64_t)below);
        const int64_t to = (here ? w->kth : side) * w->stride;
        before += below;
        after += !(below | here);
        equal -= same;
        if (w->indices)
            indices[to] = i;
        else
            y[to] = x[i * w->stride];
    }
}

static void TYPED(partition_line)(const partition_work *w, int64_t begin, uint64_t *room)
{
    int64_t equal = w->kth;
    TYPED(partition_keys)(w, begin, room);
    const uint64_t key = select_of_keys(room, w->n, &equal, room + w->n);
    TYPED(partition_spread)(w, begin, room, key, equal);
}

#undef TYPE
