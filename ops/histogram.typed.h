/* Bins between edges, for one type of floats. */

/* The last edge that is <= x, without a branch for each edge that is looked at. */
static void TYPED(edge_range)(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const NUMBER *x = (const NUMBER *)call->inputs[0]->data;
    const NUMBER *edges = (const NUMBER *)call->inputs[1]->data;
    int64_t *y = (int64_t *)call->outputs[0]->data;
    const int64_t n = call->inputs[1]->shape[0] - 1;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const NUMBER v = x[i], *low = edges;
        for (int64_t left = n; left > 1;) {
            const int64_t half = left / 2;
            low = low[half] <= v ? low + half : low;
            left -= half;
        }
        y[i] = v >= edges[0] && v <= edges[n] ? low - edges : -1;
    }
}

#undef TYPE
