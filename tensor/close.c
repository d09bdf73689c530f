#include "tensor/core.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whether two tensors hold the same numbers, but for rounding. */

typedef struct comparison {
    const ed_tensor *a, *b;
    double rtol, atol;
    double excess; /* by which the worst element is beyond the tolerance */
    ed_close_report *report;
} comparison;

/* The element's address. */
static const char *element(const ed_tensor *t, int64_t i)
{
    int64_t offset = 0;
    for (int axis = t->rank - 1; axis >= 0; axis--) {
        offset += i % t->shape[axis] * t->strides[axis];
        i /= t->shape[axis];
    }
    return (const char *)t->data + offset * (int64_t)ed_dtype_size(t->dtype);
}

/* |a - b|, exact for 64-bit integers, whose neighbours are the same float64. */
static double apart(ed_dtype dtype, const char *p, const char *q, double a, double b)
{
    if (dtype != ED_INT64 && dtype != ED_UINT64) return a == b ? 0 : fabs(a - b);
    const uint64_t sign = dtype == ED_INT64 ? UINT64_C(1) << 63 : 0;
    uint64_t x, y;
    memcpy(&x, p, sizeof x);
    memcpy(&y, q, sizeof y);
    x ^= sign; /* signed integers in the order of unsigned ones */
    y ^= sign;
    return (double)(x > y ? x - y : y - x);
}

static void compare_element(comparison *c, int64_t i)
{
    const char *p = element(c->a, i), *q = element(c->b, i);
    const double a = ed_dtype_load(c->a->dtype, p, 0), b = ed_dtype_load(c->b->dtype, q, 0);
    if (isnan(a) && isnan(b)) return;
    const ed_dtype dtype = c->a->dtype == c->b->dtype ? c->a->dtype : ED_FLOAT64;
    const double distance = apart(dtype, p, q, a, b);
    const bool is_finite = isfinite(a) && isfinite(b);
    ed_close_report *r = c->report;
    if (is_finite) {
        r->max_absolute = fmax(r->max_absolute, distance);
        if (distance) r->max_relative = fmax(r->max_relative, distance / fabs(b));
    }
    const double allowed = c->atol + c->rtol * fabs(b); /* and the distance may be infinite */
    if (!distance || (is_finite && distance <= allowed)) return;
    const double excess = is_finite ? distance - allowed : INFINITY;
    if (!r->different++ || excess > c->excess) {
        c->excess = excess;
        r->worst = i;
        r->a = a;
        r->b = b;
    }
}

static void describe(const comparison *c)
{
    ed_close_report *r = c->report;
    const double distance = fabs(r->a - r->b);
    snprintf(r->text, sizeof r->text,
             "%lld of %lld elements differ by more than %g + %g |b|; the worst, at %s: %.9g and "
             "%.9g, which differ by %.3g, relative %.3g",
             (long long)r->different, (long long)r->size, c->atol, c->rtol,
             text_of_element(c->a, r->worst).s, r->a, r->b, distance, distance / fabs(r->b));
}

static bool is_tolerance(const char *name, double tolerance)
{
    return tolerance >= 0 ||
           ed_fail(ED_INVALID_ARGUMENT, "all_close: %s must be >= 0, got %g", name, tolerance);
}

bool ed_all_close(const ed_tensor *a, const ed_tensor *b, double rtol, double atol,
                  ed_close_report *report)
{
    ed_close_report unseen;
    if (!report) report = &unseen;
    *report = (ed_close_report){.worst = -1};
    if (NULL_GIVEN("all_close", a, b)) return false;
    if (!is_tolerance("rtol", rtol) || !is_tolerance("atol", atol)) return false;
    comparison c = {tensor_elements(a), tensor_elements(b), rtol, atol, .report = report};
    if (!c.a || !c.b) return false;
    if (c.a->rank != c.b->rank ||
        (c.a->rank && memcmp(c.a->shape, c.b->shape, (size_t)c.a->rank * sizeof *c.a->shape))) {
        snprintf(report->text, sizeof report->text, "the shapes differ: %s and %s",
                 text_of_ints(c.a->shape, c.a->rank).s, text_of_ints(c.b->shape, c.b->rank).s);
        return false;
    }
    report->size = ed_size(a);
    for (int64_t i = 0; i < report->size; i++) compare_element(&c, i);
    if (report->different) describe(&c);
    return !report->different;
}
