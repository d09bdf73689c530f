/* Systems with few diagonals, for one dtype. */

/*
 * Gauss' elimination with exchanges of neighbours, as LAPACK's gtsv: room [4, n] has the diagonals
 * above, on and below the main one, and takes a second one above; b [n, k] becomes x. Returns the
 * first pivot that is 0, or MATRIX_DONE.
 */
static int64_t TYPED(solve_tridiagonal)(int64_t n, NUMBER *room, int64_t k, NUMBER *b)
{
    NUMBER *above = room, *d = room + n, *below = d + n, *second = below + n;
    for (int64_t i = 0; i + 1 < n; i++) {
        NUMBER *restrict x = b + i * k, *restrict y = x + k;
        const NUMBER under = below[i + 1];
        second[i] = 0;
        if (fabs((double)d[i]) >= fabs((double)under)) {
            if (d[i] == 0) return i;
            const NUMBER factor = under / d[i];
            d[i + 1] -= factor * above[i];
            for (int64_t j = 0; j < k; j++) y[j] -= factor * x[j];
            continue;
        }
        const NUMBER factor = d[i] / under, next = d[i + 1];
        d[i] = under;
        d[i + 1] = above[i] - factor * next;
        above[i] = next;
        if (i + 2 < n) {
            second[i] = above[i + 1];
            above[i + 1] *= -factor;
        }
        for (int64_t j = 0; j < k; j++) {
            const NUMBER upper = x[j];
            x[j] = y[j];
            y[j] = upper - factor * x[j];
        }
    }
    if (n > 0 && d[n - 1] == 0) return n - 1;
    for (int64_t i = n - 1; i >= 0; i--) {
        NUMBER *restrict x = b + i * k;
        const NUMBER *next = x + k;
        for (int64_t j = 0; j < k; j++) {
            if (i + 1 < n) x[j] -= above[i] * next[j];
            if (i + 2 < n) x[j] -= second[i] * next[k + j];
            x[j] /= d[i];
        }
    }
    return MATRIX_DONE;
}

/* By substitution. bands [bands, n] of A, offset[q] = column - row of band q; b [n, k] becomes
 * x. */
static int64_t TYPED(solve_banded)(banded s, const NUMBER *bands, int64_t k, NUMBER *b)
{
    const int64_t n = s.n;
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = s.lower != s.adjoint ? step : n - 1 - step;
        const NUMBER pivot = bands[(s.lower ? 0 : s.bands - 1) * n + i];
        NUMBER *restrict x = b + i * k;
        if (pivot == 0) return i;
        for (int64_t q = 0; q < s.bands; q++) {
            const int64_t offset = offset_of(s, q), other = s.adjoint ? i - offset : i + offset;
            if (offset == 0 || other < 0 || other >= n) continue;
            const NUMBER factor = bands[q * n + (s.adjoint ? other : i)];
            const NUMBER *restrict from = b + other * k;
            for (int64_t j = 0; j < k; j++) x[j] -= factor * from[j];
        }
        for (int64_t j = 0; j < k; j++) x[j] /= pivot;
    }
    return MATRIX_DONE;
}

#undef TYPE
