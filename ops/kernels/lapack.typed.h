/* LAPACK's routines for one dtype. sterf calls no BLAS, so nothing is set or locked for it; the
 * first call of stedc says how much room the second one needs. */

/* The eigenvalues and eigenvectors, z in columns of `ldz`, of a part of a tridiagonal matrix. */
static int TYPED(tridiagonal_part)(int64_t size, NUMBER *d, NUMBER *e, NUMBER *z, blasint ldz)
{
    const blasint n = (blasint)size;
    blasint ask = -1, needed = 0, info = 0;
    NUMBER best = 0;
    TYPED(stedc)("I", &n, d, e, z, &ldz, &best, &ask, &needed, &ask, &info, 1);
    blasint most = (blasint)((double)best * 1.0001) + 1;
    NUMBER *work = memory_alloc((size_t)most * sizeof *work);
    blasint *whole = memory_alloc((size_t)needed * sizeof *whole);
    const bool ok = work && whole;
    const int threads = begin();
    if (ok) TYPED(stedc)("I", &n, d, e, z, &ldz, work, &most, whole, &needed, &info, 1);
    end(threads);
    memory_free(work);
    memory_free(whole);
    return ok ? (int)info : LAPACK_NO_MEMORY;
}

/* A tridiagonal matrix in parts, blocks of z, that are joined two by two: without the joints, which
 * stay in e, their ends are less by them. */
typedef struct TYPED(tridiagonal) {
    int64_t n, parts;
    NUMBER *d, *e, *z;
    int info[PARTS];
} TYPED(tridiagonal);

static int64_t TYPED(part_at)(const TYPED(tridiagonal) *t, int64_t i)
{
    return t->n * i / t->parts;
}

static void TYPED(tridiagonal_parts)(int64_t first, int64_t last, int worker, void *user)
{
    TYPED(tridiagonal) *t = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t at = TYPED(part_at)(t, i), end = TYPED(part_at)(t, i + 1);
        t->info[i] = TYPED(tridiagonal_part)(end - at, t->d + at, t->e + at, t->z + at * (t->n + 1),
                                             leading(t->n));
    }
}

/* What laed1 gives is in order but for neighbours that differ by a rounding. */
static void TYPED(sort_order)(int64_t size, const NUMBER *d, blasint *order)
{
    for (int64_t i = 1; i < size; i++)
        for (int64_t j = i; j > 0 && d[order[j] - 1] < d[order[j - 1] - 1]; j--) {
            const blasint higher = order[j - 1];
            order[j - 1] = order[j];
            order[j] = higher;
        }
}

/* The same of a part from those of its halves. */
static int TYPED(join_part)(const TYPED(tridiagonal) *t, int64_t at, int64_t middle, int64_t last)
{
    const int64_t size = last - at, half = middle - at;
    const blasint n = (blasint)size, cut = (blasint)half, ldz = leading(t->n);
    NUMBER *d = t->d + at, *z = t->z + at * (t->n + 1);
    blasint info = 0;
    NUMBER *work = memory_alloc((size_t)(size * size + 4 * size) * sizeof *work);
    blasint *order = memory_alloc((size_t)(5 * size) * sizeof *order);
    if (work && order) {
        for (int64_t i = 0; i < size; i++) order[i] = (blasint)(i < half ? i : i - half) + 1;
        const int threads = begin();
        TYPED(laed1)
        (&n, d, z, &ldz, order, &t->e[middle - 1], &cut, work, order + size, &info);
        end(threads);
        TYPED(sort_order)(size, d, order);
        NUMBER *values = work + size * size;
        for (int64_t i = 0; i < size; i++) {
            const int64_t from = order[i] - 1;
            values[i] = d[from];
            memcpy(work + i * size, z + from * t->n, (size_t)size * sizeof *work);
        }
        memcpy(d, values, (size_t)size * sizeof *d);
        for (int64_t i = 0; i < size; i++)
            memcpy(z + i * t->n, work + i * size, (size_t)size * sizeof *work);
    }
    const bool ok = work && order;
    memory_free(work);
    memory_free(order);
    return ok ? (int)info : LAPACK_NO_MEMORY;
}

static void TYPED(join_parts)(int64_t first, int64_t last, int worker, void *user)
{
    TYPED(tridiagonal) *t = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        t->info[i] = TYPED(join_part)(t, TYPED(part_at)(t, i), t->n * (2 * i + 1) / (2 * t->parts),
                                      TYPED(part_at)(t, i + 1));
}

static int TYPED(run_parts)(TYPED(tridiagonal) *t, threads_range range)
{
    for (int64_t i = 0; i < t->parts; i++) t->info[i] = LAPACK_DIVERGES; /* if interrupted */
    threads_run(t->parts, 1, range, t);
    for (int64_t i = 0; i < t->parts; i++)
        if (t->info[i]) return t->info[i];
    return 0;
}

int TYPED(lapack_tridiagonal)(int64_t size, NUMBER *d, NUMBER *e, NUMBER *z)
{
    if (!z) {
        const blasint n = (blasint)size;
        blasint info = 0;
        TYPED(sterf)(&n, d, e, &info);
        return (int)info;
    }
    TYPED(tridiagonal) t = {.n = size, .parts = 1, .d = d, .e = e, .z = z};
    while (t.parts < PARTS && size >= 2 * t.parts * PART_ROWS) t.parts *= 2;
    for (int64_t i = 1; i < t.parts; i++) {
        const int64_t at = TYPED(part_at)(&t, i);
        const NUMBER joint = e[at - 1] < 0 ? -e[at - 1] : e[at - 1];
        d[at - 1] -= joint;
        d[at] -= joint;
    }
    if (t.parts > 1) memset(z, 0, (size_t)(size * size) * sizeof *z);
    int info = TYPED(run_parts)(&t, TYPED(tridiagonal_parts));
    while (!info && t.parts > 1) {
        t.parts /= 2;
        info = TYPED(run_parts)(&t, TYPED(join_parts));
    }
    return info;
}

int TYPED(lapack_bidiagonal)(int64_t size, NUMBER *d, NUMBER *e, NUMBER *u, NUMBER *vt)
{
    const blasint n = (blasint)size, ld = leading(size);
    blasint info = 0;
    NUMBER *work = memory_alloc((size_t)(u ? 3 * size * size + 4 * size : 8 * size) * sizeof *work);
    blasint *whole = memory_alloc((size_t)(8 * size) * sizeof *whole);
    const bool ok = work && whole;
    const int threads = begin();
    if (ok) TYPED(bdsdc)
    ("U", u ? "I" : "N", &n, d, e, u, &ld, vt, &ld, NULL, NULL, work, whole, &info, 1, 1);
    end(threads);
    memory_free(work);
    memory_free(whole);
    return ok ? (int)info : LAPACK_NO_MEMORY;
}

#undef TYPE
