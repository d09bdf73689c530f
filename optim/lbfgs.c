#include "optim/lbfgs.h"
#include "optim/line_search.h"
#include "optim/optimizer.h"
#include "ops/ops.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/*
 * All variables are one vector x of float64. A step goes along d = -H g, where H, about the inverse
 * of the Hessian, is never made: the last steps s and changes of the gradient y say what it does to
 * g (two loops over them, Nocedal and Wright, algorithm 7.4). The rules of when to stop are
 * PyTorch's.
 */
typedef struct lbfgs {
    const ed_lbfgs_options *o;
    ed_objective loss;
    void *user;
    ed_list *variables;
    ed_tensor **kept; /* values of the last step that was finished, one for each variable */
    int64_t n, history, oldest;
    double *x, *direction, *step; /* [n] */
    double *s, *y, *rho, *alpha;  /* of the history: [history_size, n], [history_size] */
    line_point points[4];         /* where a step begins and ends; two of the line search */
    ed_lbfgs_report report;
} lbfgs;

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double largest(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fabs(x[i]) > most || isnan(x[i]) ? fabs(x[i]) : most;
    return most;
}

/* ---- The loss -------------------------------------------------------------------------------- */

/* The loss as a number; NAN, with an error, on failure. */
static double number_of(const ed_tensor *loss)
{
    if (loss && ed_rank(loss) == 0 && ed_dtype_is_float(ed_dtype_of(loss))) return ed_item(loss);
    if (loss)
        ed_fail(ED_INVALID_ARGUMENT, "lbfgs: the loss must be a float scalar, got %s",
                text_of_tensor(tensor_read(loss)).s);
    else if (!ed_failed())
        ed_fail(ED_INVALID_ARGUMENT, "lbfgs: the loss is NULL");
    return NAN;
}

static bool take_gradients(const ed_list *gradients, double *to)
{
    for (int64_t i = 0; gradients && i < gradients->size; i++) {
        const double *values = ed_as_doubles(gradients->items[i]);
        if (!values) return false;
        memcpy(to, values, (size_t)ed_size(gradients->items[i]) * sizeof *to);
        to += ed_size(gradients->items[i]);
    }
    return gradients;
}

/* The loss and its gradient at the variables' present values. */
static bool evaluate_here(lbfgs *l, line_point *at)
{
    ED_SCOPE;
    l->report.evaluations++;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = tape ? SCOPE_GUARDED(l->loss(l->user)) : NULL;
    at->f = number_of(loss);
    if (ed_failed()) return false;
    ed_list *gradients = ed_gradient(tape, loss, l->variables, .unconnected_zeros = true);
    return take_gradients(gradients, at->gradient);
}

/* The variables become x + t direction. */
static bool move(lbfgs *l, double t)
{
    ED_SCOPE;
    const double *x = l->x, *d = l->direction;
    for (int64_t i = 0; i < l->n; i++) l->step[i] = x[i] + t * d[i];
    const double *from = l->step;
    for (int64_t i = 0; i < l->variables->size; i++) {
        ed_tensor *v = l->variables->items[i];
        ed_tensor *value = ed_constant_of(ED_FLOAT64, from, ed_shape(v));
        if (!value || !ed_assign(v, ed_cast(value, ed_dtype_of(v)))) return false;
        from += ed_size(v);
    }
    return true;
}

static bool evaluate_at(void *user, line_point *at)
{
    lbfgs *l = user;
    if (!move(l, at->t) || !evaluate_here(l, at)) return false;
    at->slope = dot(at->gradient, l->direction, l->n);
    return true;
}

/* ---- Values that a failure goes back to ------------------------------------------------------ */

static void drop_kept(lbfgs *l)
{
    for (int64_t i = 0; l->kept && i < l->variables->size; i++) {
        ed_release(l->kept[i]);
        l->kept[i] = NULL;
    }
}

static bool keep_values(lbfgs *l)
{
    drop_kept(l);
    for (int64_t i = 0; i < l->variables->size; i++)
        if (!(l->kept[i] = tensor_snapshot(tensor_read(l->variables->items[i])))) return false;
    return true;
}

static void go_back(lbfgs *l)
{
    for (int64_t i = 0; l->kept && i < l->variables->size; i++) {
        if (l->kept[i]) variable_replace(l->variables->items[i], l->kept[i]);
        l->kept[i] = NULL;
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Row i of the history, 0 being the oldest. */
static double *row_of(const lbfgs *l, double *rows, int64_t i)
{
    return rows + (l->oldest + i) % l->o->history_size * l->n;
}

static double *number_at(const lbfgs *l, double *numbers, int64_t i)
{
    return numbers + (l->oldest + i) % l->o->history_size;
}

/* Adds the last step and the change of the gradient, unless the slope did not rise. */
static void remember(lbfgs *l, double t, const double *before, const double *after)
{
    double *y = l->step;
    for (int64_t i = 0; i < l->n; i++) y[i] = after[i] - before[i];
    const double curvature = t * dot(y, l->direction, l->n);
    if (!(curvature > 1e-10)) return;
    if (l->history == l->o->history_size)
        l->oldest = (l->oldest + 1) % l->o->history_size;
    else
        l->history++;
    double *s = row_of(l, l->s, l->history - 1);
    for (int64_t i = 0; i < l->n; i++) s[i] = t * l->direction[i];
    memcpy(row_of(l, l->y, l->history - 1), y, (size_t)l->n * sizeof *y);
    *number_at(l, l->rho, l->history - 1) = 1 / curvature;
}

/* direction = -H g. */
static void find_direction(lbfgs *l, const double *g)
{
    double *d = l->direction;
    for (int64_t i = 0; i < l->n; i++) d[i] = -g[i];
    for (int64_t k = l->history - 1; k >= 0; k--) {
        const double a = *number_at(l, l->rho, k) * dot(row_of(l, l->s, k), d, l->n);
        *number_at(l, l->alpha, k) = a;
        for (int64_t i = 0; i < l->n; i++) d[i] -= a * row_of(l, l->y, k)[i];
    }
    if (!l->history) return;
    const double *y = row_of(l, l->y, l->history - 1);
    const double scale = 1 / (*number_at(l, l->rho, l->history - 1) * dot(y, y, l->n));
    for (int64_t i = 0; i < l->n; i++) d[i] *= scale;
    for (int64_t k = 0; k < l->history; k++) {
        const double b = *number_at(l, l->rho, k) * dot(row_of(l, l->y, k), d, l->n);
        const double a = *number_at(l, l->alpha, k) - b;
        for (int64_t i = 0; i < l->n; i++) d[i] += a * row_of(l, l->s, k)[i];
    }
}

/* From points[0] along the direction to points[1]; false on failure. */
static bool go(lbfgs *l, double t)
{
    line_point *from = &l->points[0], *to = &l->points[1];
    to->t = t;
    if (!strcmp(l->o->line_search, "none")) return evaluate_at(l, to);
    memcpy(l->points[2].gradient, from->gradient, (size_t)l->n * sizeof(double));
    line_search s = {.evaluate = evaluate_at,
                     .user = l,
                     .longest = largest(l->direction, l->n),
                     .least = l->o->tolerance_change,
                     .most = 25};
    return line_search_run(&s, from, to, &l->points[2]) && move(l, to->t);
}

/* One iteration. *done: no more are needed. false on failure. */
static bool iterate(lbfgs *l, bool *done)
{
    line_point *from = &l->points[0], *to = &l->points[1];
    double sum = 0;
    find_direction(l, from->gradient);
    for (int64_t i = 0; i < l->n; i++) sum += fabs(from->gradient[i]);
    from->slope = dot(from->gradient, l->direction, l->n);
    *done = from->slope > -l->o->tolerance_change;
    if (*done) return true;
    const double rate = l->o->learning_rate;
    if (!go(l, l->report.iterations ? rate : fmin(1, 1 / sum) * rate)) return false;
    if (!isfinite(to->f))
        return ed_fail(ED_INVALID_ARGUMENT, "lbfgs: in iteration %lld the loss became %g",
                       (long long)l->report.iterations + 1, isnan(to->f) ? (double)NAN : to->f);
    if (!keep_values(l)) return false;
    const double t = to->t, change = fabs(to->f - from->f);
    for (int64_t i = 0; i < l->n; i++) l->x[i] += t * l->direction[i];
    const double longest = fabs(t) * largest(l->direction, l->n);
    remember(l, t, from->gradient, to->gradient);
    const line_point last = *from;
    *from = *to;
    *to = last;
    l->report.iterations++;
    l->report.loss = from->f;
    l->report.gradient = largest(from->gradient, l->n);
    *done = l->report.gradient <= l->o->tolerance_grad || longest <= l->o->tolerance_change ||
            change < l->o->tolerance_change;
    return true;
}

/* ---- A call ---------------------------------------------------------------------------------- */

/* n numbers of the scope. */
static bool numbers(double **to, int64_t n)
{
    size_t bytes;
    return (!__builtin_mul_overflow((size_t)n, sizeof **to, &bytes) &&
            (*to = ed_scope_alloc(bytes + 1))) ||
           ed_failed() || ed_fail(ED_OUT_OF_MEMORY, "lbfgs: the history is too large");
}

static bool make_vectors(lbfgs *l)
{
    const int64_t m = l->o->history_size;
    int64_t rows;
    if (__builtin_mul_overflow(m, l->n, &rows))
        return ed_fail(ED_OUT_OF_MEMORY, "lbfgs: the history is too large");
    bool fine = numbers(&l->x, l->n) && numbers(&l->direction, l->n) && numbers(&l->step, l->n) &&
                numbers(&l->s, rows) && numbers(&l->y, rows) && numbers(&l->rho, m) &&
                numbers(&l->alpha, m);
    for (int i = 0; i < 4; i++) fine = fine && numbers(&l->points[i].gradient, l->n);
    const size_t bytes = (size_t)l->variables->size * sizeof *l->kept;
    if (!fine || ed_failed() || !(l->kept = ed_scope_alloc(bytes))) return false;
    memset(l->kept, 0, bytes);
    double *x = l->x;
    for (int64_t i = 0; i < l->variables->size; i++) {
        const double *values = ed_as_doubles(ed_value(l->variables->items[i]));
        if (!values) return false;
        memcpy(x, values, (size_t)ed_size(l->variables->items[i]) * sizeof *x);
        x += ed_size(l->variables->items[i]);
    }
    return keep_values(l);
}

/* The variables, which the first call of the loss may create, and the first point. */
static bool first_point(lbfgs *l, void *trained)
{
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = tape ? SCOPE_GUARDED(l->loss(l->user)) : NULL;
    l->report.evaluations = 1;
    l->report.loss = l->points[0].f = number_of(loss);
    if (ed_failed()) return false;
    if (!(l->variables = optim_trained("lbfgs", tape, trained))) return false;
    if (!l->variables->size) return ed_fail(ED_INVALID_ARGUMENT, "lbfgs: there are no variables");
    for (int64_t i = 0; i < l->variables->size; i++) {
        const ed_tensor *v = l->variables->items[i];
        if (!v || !ed_is_variable(v) || !ed_dtype_is_float(ed_dtype_of(v)))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "lbfgs: entry %lld of the list is no variable of floats", text_nth(i));
        l->n += ed_size(v);
    }
    if (!isfinite(l->points[0].f))
        return ed_fail(ED_INVALID_ARGUMENT, "lbfgs: the loss of the first values is %g",
                       l->points[0].f);
    if (!make_vectors(l)) return false;
    ed_list *gradients = ed_gradient(tape, loss, l->variables, .unconnected_zeros = true);
    if (!take_gradients(gradients, l->points[0].gradient)) return false;
    l->report.gradient = largest(l->points[0].gradient, l->n);
    return true;
}

static bool minimized(lbfgs *l, void *trained)
{
    if (!first_point(l, trained)) return false;
    const int64_t most = l->o->max_eval ? l->o->max_eval : l->o->max_iter + l->o->max_iter / 4;
    l->report.converged = l->report.gradient <= l->o->tolerance_grad;
    bool done = l->report.converged;
    while (!done) {
        if (ed_interrupted()) return ed_fail(ED_CANCELLED, "lbfgs: interrupted");
        if (!iterate(l, &l->report.converged)) return false;
        done = l->report.converged || l->report.iterations >= l->o->max_iter ||
               l->report.evaluations >= most;
    }
    return true;
}

ED_SCHEMA(lbfgs, ED_LBFGS_OPTIONS, ed_lbfgs_options);

ed_tensor *ed_lbfgs_with(ed_objective loss, void *user, void *trained, ed_lbfgs_report *report,
                         const ed_lbfgs_options *options)
{
    if (report) *report = (ed_lbfgs_report){0};
    if (!loss) return ed_fail(ED_INVALID_ARGUMENT, "lbfgs: loss is NULL");
    if (!(options = schema_options("lbfgs", lbfgs_fields, &lbfgs_defaults, options))) return NULL;
    if (!trained && ed_failed()) return NULL; /* the call that returns `trained` failed */
    ED_SCOPE;
    lbfgs l = {.o = options, .loss = loss, .user = user};
    const bool fine = minimized(&l, trained);
    if (!fine) go_back(&l);
    drop_kept(&l);
    if (report) *report = l.report;
    return fine ? ed_keep(ed_scalar(l.report.loss, .dtype = ED_FLOAT64)) : NULL;
}
