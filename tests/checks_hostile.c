/*
 * Operands that nobody would give. An op may refuse them or compute with them; what it may not is
 * to read or write elsewhere, which the sanitizers see, to work for ever, or to fail silently.
 */
#include "tests/checks.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Values ---------------------------------------------------------------------------------- */

static const double odd_floats[] = {0, -0.0, 1, NAN, INFINITY, -INFINITY, 1e308, -1e308, 5e-324};
static const int64_t odd_integers[] = {0,         -1,        1000,      INT32_MAX,
                                       INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)1 << 40};
enum {
    ODD_FLOATS = sizeof odd_floats / sizeof *odd_floats,
    ODD_INTEGERS = sizeof odd_integers / sizeof *odd_integers
};

/* Element j becomes odd value number k, as far as the dtype holds it; false behind the last. */
static bool put_odd(ed_tensor *x, int64_t j, int k)
{
    if (ed_dtype_is_float(x->dtype)) {
        if (k >= ODD_FLOATS) return false;
        dtype_store(x->dtype, x->data, j, odd_floats[k]);
        return true;
    }
    if (k >= ODD_INTEGERS) return false;
    char *const to = (char *)x->data + j * (int64_t)dtype_size(x->dtype);
    const int64_t value = x->dtype == ED_BOOL ? odd_integers[k] & 1 : odd_integers[k];
    memcpy(to, &value, dtype_size(x->dtype)); /* the lowest bytes */
    return true;
}

/* Of operand i all elements, or the last one, are an odd value: a matrix of them is singular. */
static void check_values(findings *f, int s, int i)
{
    for (int k = 0; k < ODD_FLOATS; k++)
        for (int last = 0; last < 2; last++) {
            ED_SCOPE;
            trial t;
            char what[64];
            if (!trial_begin(f, &t, s, ED_FLOAT64) || !trial_fill(&t)) return;
            ed_tensor *x = t.x[i];
            bool put = true;
            for (int64_t j = last && x->size ? x->size - 1 : 0; put && j < x->size; j++)
                put = put_odd(x, j, k);
            if (!put) return;
            snprintf(what, sizeof what, "operand %d with odd value %d%s", i, k,
                     last ? " at the end" : "");
            trial_survives(f, &t, what);
        }
}

/* ---- Empty and huge -------------------------------------------------------------------------- */

/* Extents of operand i that are 0 and 2^40; others are as they are, or follow where they are equal.
 * What has elements nevertheless, and so no memory, is left out. */
static void check_empty(findings *f, int s, int i)
{
    trial plain;
    if (!trial_begin(f, &plain, s, ED_FLOAT64)) return;
    for (int zero = 0; zero < plain.rank[i]; zero++)
        for (int large = 0; large < plain.rank[i]; large++)
            for (int follow = 0; follow < 2; follow++) {
                ED_SCOPE;
                trial t = plain;
                char what[80];
                const int64_t of_zero = t.shape[i][zero], of_large = t.shape[i][large];
                for (int k = 0; follow && k < t.n; k++)
                    for (int d = 0; d < t.rank[k]; d++)
                        t.shape[k][d] = t.shape[k][d] == of_zero    ? 0
                                        : t.shape[k][d] == of_large ? (int64_t)1 << 40
                                                                    : t.shape[k][d];
                t.shape[i][large] = (int64_t)1 << 40;
                t.shape[i][zero] = 0;
                snprintf(what, sizeof what, "operand %d of extents 0 at %d, 2^40 at %d", i, zero,
                         large);
                if (trial_fill(&t)) trial_survives(f, &t, what);
                ed_clear_error();
            }
}

void check_hostile(findings *f)
{
    trial t;
    for (int s = 0; trial_begin(f, &t, s, ED_FLOAT64); s++)
        for (int i = 0; i < t.n; i++) {
            check_values(f, s, i);
            check_empty(f, s, i);
        }
}
