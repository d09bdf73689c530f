/*
 * The loops of one fold (FOLD is sum, prod, max or min) of one type: TYPED(fold_groups),
 * TYPED(fold_rows) and TYPED(fold_merge) with a fold that is constant.
 */
#define FOLDED(name) TYPED_PASTE(TYPED_PASTE(TYPED_PASTE(reduce, FOLD), name), TYPE)
#define FOLD_KIND    TYPED_PASTE(fold, FOLD)

static void FOLDED(groups)(const void *x, int64_t apart, int64_t groups, int64_t n, int64_t ahead,
                           void *state)
{
    TYPED(fold_groups)(FOLD_KIND, LANES_ITSELF, x, apart, groups, n, ahead, state);
}

static void FOLDED(rows)(const void *const *rows, int64_t n, int64_t width, void *state,
                         void *scratch)
{
    TYPED(fold_rows)(FOLD_KIND, rows, n, width, state, scratch);
}

static void FOLDED(merge)(void *a, const void *b, int64_t width, int64_t n_a, int64_t n_b)
{
    (void)n_a, (void)n_b;
    TYPED(fold_merge)(FOLD_KIND, a, b, width);
}

#undef FOLD
#undef FOLDED
#undef FOLD_KIND
