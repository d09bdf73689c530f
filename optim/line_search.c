#include "optim/line_search.h"
#include <math.h>

/*
 * Nocedal and Wright, algorithms 3.5 and 3.6, with cubic interpolation: first steps grow until two
 * of them have a good one in between, then that interval is made smaller. A step is good if the
 * function has become less by a share of what the first slope promised, and the slope is flat.
 */
static const double decrease = 1e-4, flatness = 0.9;

/* The minimum of the cubic through two points, within the bounds; their middle if there is none. */
static double cubic_minimum(const line_point *a, const line_point *b, double low, double high)
{
    const double d = a->slope + b->slope - 3 * (a->f - b->f) / (a->t - b->t);
    const double square = d * d - a->slope * b->slope;
    const line_point *left = a->t <= b->t ? a : b, *right = a->t <= b->t ? b : a;
    const double root = sqrt(square);
    const double t = right->t - (right->t - left->t) * ((right->slope + root - d) /
                                                        (right->slope - left->slope + 2 * root));
    if (!(square >= 0) || !isfinite(t)) return low + (high - low) / 2;
    return fmin(fmax(t, low), high);
}

static void swap(line_point *a, line_point *b)
{
    const line_point kept = *a;
    *a = *b;
    *b = kept;
}

static bool evaluated(line_search *s, line_point *at)
{
    s->evaluations++;
    return s->evaluate(s->user, at);
}

/* Whether the function is less than the first slope promised; not if it is NaN. */
static bool decreased(const line_point *from, const line_point *at)
{
    return at->f <= from->f + decrease * at->t * from->slope;
}

static bool is_flat(const line_point *from, const line_point *at)
{
    return fabs(at->slope) <= -flatness * from->slope;
}

/*
 * Between `low`, the best point so far, and `high`. A new point that comes too close to an end
 * twice in a row is moved away from it.
 */
static bool shrink(line_search *s, const line_point *from, line_point *low, line_point *high,
                   line_point *next)
{
    bool was_close = false;
    while (s->evaluations < s->most && fabs(high->t - low->t) * s->longest >= s->least) {
        const double left = fmin(low->t, high->t), right = fmax(low->t, high->t);
        const double margin = 0.1 * (right - left);
        next->t = cubic_minimum(low, high, left, right);
        const bool close = next->t - left < margin || right - next->t < margin;
        if (close && (was_close || next->t <= left || next->t >= right)) {
            next->t = right - next->t < next->t - left ? right - margin : left + margin;
            was_close = false;
        } else {
            was_close = close;
        }
        if (!evaluated(s, next)) return false;
        if (!decreased(from, next) || next->f >= low->f) {
            swap(high, next);
            if (high->f < low->f) swap(low, high);
            continue;
        }
        if (is_flat(from, next)) return swap(low, next), true;
        if (next->slope * (high->t - low->t) >= 0) swap(high, low);
        swap(low, next);
    }
    return true;
}

bool line_search_run(line_search *s, const line_point *from, line_point *to, line_point *spare)
{
    line_point *before = &spare[0], *next = &spare[1];
    const line_point start = {0, from->f, from->slope, before->gradient};
    *before = start;
    bool first = true;
    if (!evaluated(s, to)) return false;
    while (decreased(from, to) && (first || to->f < before->f)) {
        if (is_flat(from, to)) return true;
        if (to->slope >= 0 || s->evaluations >= s->most) break;
        next->t = cubic_minimum(before, to, to->t + 0.01 * (to->t - before->t), 10 * to->t);
        if (!evaluated(s, next)) return false;
        swap(before, to);
        swap(to, next);
        first = false;
    }
    /* A good step lies between `before` and `to`. The first of them may be the beginning. */
    line_point *low = before->f <= to->f || isnan(to->f) ? before : to;
    line_point *high = low == before ? to : before;
    if (!shrink(s, from, low, high, next)) return false;
    if (low != to) swap(low, to);
    return true;
}
