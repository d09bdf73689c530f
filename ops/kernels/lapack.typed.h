/* LAPACK's routines for one dtype. Each is called twice: the first call says how much room the
 * second one needs. */

int TYPED(lapack_eigh)(bool vectors, int64_t size, NUMBER *a, NUMBER *w)
{
    const blasint n = (blasint)size, lda = leading(size);
    const char *job = vectors ? "V" : "N";
    blasint ask = -1, needed = 0, info = 0;
    NUMBER best = 0;
    TYPED(syevd)(job, "U", &n, a, &lda, w, &best, &ask, &needed, &ask, &info, 1, 1);
    blasint most = (blasint)best + 1;
    NUMBER *work = memory_alloc((size_t)most * sizeof *work);
    blasint *whole = memory_alloc((size_t)needed * sizeof *whole);
    const bool ok = work && whole;
    const int threads = begin();
    if (ok) TYPED(syevd)(job, "U", &n, a, &lda, w, work, &most, whole, &needed, &info, 1, 1);
    end(threads);
    memory_free(work);
    memory_free(whole);
    return ok ? (int)info : LAPACK_NO_MEMORY;
}

int TYPED(lapack_svd)(char vectors, int64_t rows, int64_t columns, NUMBER *a, NUMBER *s, NUMBER *u,
                      NUMBER *vt)
{
    const int64_t k = rows < columns ? rows : columns;
    const blasint m = (blasint)rows, n = (blasint)columns, lda = leading(rows), ldu = leading(rows);
    const blasint ldvt = leading(vectors == 'A' ? columns : k);
    blasint ask = -1, info = 0;
    NUMBER best = 0, none;
    if (vectors == 'N') u = vt = &none;
    blasint *whole = memory_alloc((size_t)(8 * k) * sizeof *whole);
    if (!whole) return LAPACK_NO_MEMORY;
    TYPED(gesdd)(&vectors, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &best, &ask, whole, &info, 1);
    blasint most = (blasint)((double)best * 1.0001) + 1;
    NUMBER *work = memory_alloc((size_t)most * sizeof *work);
    const int threads = begin();
    if (work) TYPED(gesdd)
    (&vectors, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &most, whole, &info, 1);
    end(threads);
    memory_free(work);
    memory_free(whole);
    return work ? (int)info : LAPACK_NO_MEMORY;
}

#undef TYPE
