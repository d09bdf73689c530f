/* LAPACK's routines for one dtype. sterf calls no BLAS, so nothing is set or locked for it; the
 * first call of stedc says how much room the second one needs. */

int TYPED(lapack_tridiagonal)(int64_t size, NUMBER *d, NUMBER *e, NUMBER *z)
{
    const blasint n = (blasint)size, ldz = leading(size);
    blasint ask = -1, needed = 0, info = 0;
    NUMBER best = 0;
    if (!z) {
        TYPED(sterf)(&n, d, e, &info);
        return (int)info;
    }
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
