#include "autodiff/autodiff.h"
#include "tensor/schema_core.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * The gradient checker compares the Jacobian of the tape, computed row by row, with central
 * differences, computed column by column.
 *
 *                element of the inputs
 *              +-----------------------+
 *      element |                       |  one backward pass of the tape gives a row;
 *      of the  |        J[i, j]        |  two evaluations of f, at x - h and x + h, give a column.
 *      output  |                       |
 *              +-----------------------+
 *
 * The second order is the same check of another function: the tape's gradient of one input as a
 * function of all inputs and of the output's gradient.
 */

/* ---- The state of a check
 * ---------------------------------------------------------------------- */

typedef struct check {
    ed_function f;
    void *user;
    ed_list *inputs;
    ed_check_options options;
    int order;      /* 1, or 2 for the gradient's gradient ... */
    int64_t of;     /* ... of this input */
    int64_t rows;   /* elements of the output that are checked */
    int64_t size;   /* elements of the output */
    double *taped;  /* rows of one input element each: taped[j * rows + i] */
    double *values; /* scratch: f at both points, `size` elements each */

    /* The worst element so far: ratio is its difference / the allowed one. */
    double ratio, tape, difference, allowed;
    int64_t input, column, row, compared;
} check;

/* The i-th of `count` elements that are evenly spread over `size`. */
static int64_t spread(int64_t i, int64_t count, int64_t size)
{
    return count < 2 ? 0 : (int64_t)((__int128)i * (size - 1) / (count - 1));
}

static int64_t looked_at(const check *c, int64_t size)
{
    return c->options.limit > 0 && c->options.limit < size ? c->options.limit : size;
}

static bool is_varied(const ed_tensor *x)
{
    return x->dtype == ED_FLOAT64;
}

static ed_tensor *call_f(const check *c, ed_list *inputs)
{
    const error_before before = error_begin();
    ed_tensor *y = SCOPE_GUARDED(c->f(inputs, c->user));
    if (!y && error_is_missing(before))
        ed_fail(ED_INVALID_ARGUMENT, "check_gradient: the function returned NULL without an error");
    if (!y || error_since(before)) return NULL;
    y = tensor_value(y);
    if (y->dtype != ED_FLOAT64)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "check_gradient: the function returned %s; it must return float64",
                       text_of_tensor(y).s);
    return y;
}

/* ---- Rows: the tape -------------------------------------------------------------------------- */

static ed_tensor *one_hot_like(const ed_tensor *y, int64_t at)
{
    ed_tensor *dy = tensor_new(ED_FLOAT64, y->rank, y->shape);
    if (!dy) return NULL;
    memset(dy->data, 0, (size_t)dy->size * sizeof(double));
    ((double *)dy->data)[at] = 1;
    return scope_give(dy);
}

/* The gradient from one element of the output goes to that row in each column. */
static bool take_row(check *c, ed_tape *tape, ed_tensor *y, ed_list *sources, int64_t row)
{
    ED_SCOPE;
    ed_tensor *dy = one_hot_like(y, spread(row, c->rows, c->size));
    if (!dy) return false;
    ed_list *gradients =
        ed_gradient_list(tape, ed_list_of_one(y), sources,
                         &(ed_gradient_options){.output_gradients = ed_list_of_one(dy)});
    if (!gradients) return false;
    double *to = c->taped + row;
    for (int64_t k = 0; k < sources->size; k++) {
        const ed_tensor *dx = gradients->items[k];
        const double *from = dx ? ed_data(dx) : NULL;
        if (dx && !from) return false;
        int64_t size = sources->items[k]->size, columns = looked_at(c, size);
        for (int64_t j = 0; j < columns; j++, to += c->rows)
            *to = from ? from[spread(j, columns, size)] : 0;
    }
    return true;
}

static ed_list *varied_inputs(const check *c)
{
    int64_t n = 0;
    for (int64_t i = 0; i < c->inputs->size; i++) n += is_varied(c->inputs->items[i]);
    ed_list *list = list_new(n);
    if (!list) return NULL;
    n = 0;
    for (int64_t i = 0; i < c->inputs->size; i++)
        if (is_varied(c->inputs->items[i])) list->items[n++] = ed_retain(c->inputs->items[i]);
    return scope_give(list);
}

/* Allocates all rows and columns and two outputs. */
static bool allocate_rows(check *c, const ed_list *sources)
{
    size_t columns = 0, bytes;
    for (int64_t k = 0; k < sources->size; k++)
        columns += (size_t)looked_at(c, sources->items[k]->size);
    if (!memory_mul(columns, (size_t)c->rows, &bytes) || !memory_mul(bytes, sizeof(double), &bytes))
        return ed_fail(ED_OUT_OF_MEMORY,
                       "check_gradient: a Jacobian of %zu x %lld elements is too large", columns,
                       (long long)c->rows),
               false;
    c->taped = memory_alloc(bytes);
    c->values = memory_alloc(2 * (size_t)c->size * sizeof(double));
    return c->taped && c->values;
}

static bool take_rows(check *c)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin(.persistent = true, .ignore_accessed_variables = true);
    ed_list *sources = varied_inputs(c);
    if (!tape || !sources) return false;
    for (int64_t i = 0; i < sources->size; i++)
        if (!ed_watch(tape, sources->items[i])) return false;
    ed_tensor *y = call_f(c, c->inputs);
    if (!y || !ed_tape_stop(tape)) return false;
    c->size = y->size;
    c->rows = looked_at(c, c->size);
    if (!allocate_rows(c, sources)) return false;
    for (int64_t i = 0; i < c->rows; i++)
        if (!take_row(c, tape, y, sources, i)) return false;
    return true;
}

/* ---- Columns: differences -------------------------------------------------------------------- */

/* Writes f to `to`, with one element of one input replaced. */
static bool evaluate(const check *c, int64_t input, int64_t element, double value, double *to)
{
    ED_SCOPE;
    const ed_tensor *old = c->inputs->items[input];
    ed_tensor *x = scope_give(tensor_new(ED_FLOAT64, old->rank, old->shape));
    ed_list *inputs = scope_give(list_new(c->inputs->size));
    if (!x || !inputs) return false;
    tensor_pack(old, x->data);
    ((double *)x->data)[element] = value;
    for (int64_t i = 0; i < inputs->size; i++)
        inputs->items[i] = ed_retain(i == input ? x : c->inputs->items[i]);
    ed_tensor *y = call_f(c, inputs);
    if (!y) return false;
    if (y->size != c->size)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "check_gradient: the function returned %s after %lld elements",
                       text_of_tensor(y).s, (long long)c->size),
               false;
    if ((y = tensor_read(y))) tensor_pack(y, to);
    return y;
}

static void compare_jacobians(check *c, int64_t input, int64_t column, int64_t row, double tape,
                              double difference, double noise)
{
    double larger = fmax(fabs(tape), fabs(difference));
    double allowed = c->options.atol + c->options.rtol * larger + noise;
    double ratio = fabs(tape - difference) / allowed;
    if (!isfinite(tape) || !isfinite(difference)) ratio = INFINITY;
    if (tape == difference) ratio = 0;
    if (c->compared++ && ratio <= c->ratio) return;
    c->ratio = ratio;
    c->tape = tape;
    c->difference = difference;
    c->allowed = allowed;
    c->input = input;
    c->column = column;
    c->row = row;
}

/* The difference is no more precise than f's rounding errors: the last bits of its values. An
 * infinity that stays has none. */
static bool compare_column(check *c, int64_t input, int64_t element, double at, const double *taped)
{
    double h = c->options.step * fmax(1, fabs(at));
    double *above = c->values, *below = c->values + c->size, width = (at + h) - (at - h);
    if (!evaluate(c, input, element, at + h, above) || !evaluate(c, input, element, at - h, below))
        return false;
    for (int64_t i = 0; i < c->rows; i++) {
        int64_t row = spread(i, c->rows, c->size);
        double noise = 2 * DBL_EPSILON * (fabs(above[row]) + fabs(below[row])) / width;
        double difference = (above[row] - below[row]) / width;
        if (isinf(above[row]) && above[row] == below[row]) noise = difference = 0;
        compare_jacobians(c, input, element, row, taped[i], difference, noise);
    }
    return true;
}

static bool compare_columns(check *c)
{
    const double *taped = c->taped;
    for (int64_t k = 0; k < c->inputs->size; k++) {
        if (!is_varied(c->inputs->items[k])) continue;
        ED_SCOPE;
        const double *x = ed_data(c->inputs->items[k]);
        if (!x) return false;
        int64_t size = c->inputs->items[k]->size, columns = looked_at(c, size);
        for (int64_t j = 0; j < columns; j++, taped += c->rows) {
            const int64_t element = spread(j, columns, size);
            if (!compare_column(c, k, element, x[element], taped)) return false;
        }
    }
    return true;
}

static bool call_function(check *c)
{
    bool ok = take_rows(c) && compare_columns(c);
    memory_free(c->taped);
    memory_free(c->values);
    c->taped = c->values = NULL;
    return ok;
}

/* ---- The second order ------------------------------------------------------------------------ */

/* The tape's gradient of input `of`; the last input is the gradient of f's output. */
static ed_tensor *gradient_of_f(ed_list *inputs, void *user)
{
    const check *c = user;
    ED_SCOPE;
    ed_list *own = scope_give(list_new(inputs->size - 1));
    if (!own) return NULL;
    for (int64_t i = 0; i < own->size; i++) own->items[i] = ed_retain(inputs->items[i]);
    ed_tensor *x = own->items[c->of], *dy = inputs->items[own->size];
    ed_tape *tape = ed_tape_begin(.ignore_accessed_variables = true);
    if (!tape || !ed_watch(tape, x)) return NULL;
    ed_tensor *y = call_f(c, own);
    if (!y) return NULL;
    ed_tensor *dx = ed_gradient_tensor(
        tape, ed_list_of_one(y), x, &(ed_gradient_options){.output_gradients = ed_list_of_one(dy)});
    if (dx || ed_failed()) return ed_keep(dx);
    dx = tensor_new(ED_FLOAT64, x->rank, x->shape);
    if (dx) memset(dx->data, 0, (size_t)dx->size * sizeof(double));
    return ed_keep(scope_give(dx));
}

/* The inputs, and a tensor in the shape of the output with values between 1/2 and 3/2. */
static ed_list *inputs_and_dy(const check *c)
{
    ed_tensor *y = call_f(c, c->inputs);
    if (!y) return NULL;
    ed_tensor *dy = scope_give(tensor_new(ED_FLOAT64, y->rank, y->shape));
    ed_list *list = scope_give(list_new(c->inputs->size + 1));
    if (!dy || !list) return NULL;
    for (int64_t i = 0; i < dy->size; i++) {
        double golden = 0.6180339887498949 * (double)i;
        ((double *)dy->data)[i] = 0.5 + golden - floor(golden);
    }
    for (int64_t i = 0; i < c->inputs->size; i++) list->items[i] = ed_retain(c->inputs->items[i]);
    list->items[c->inputs->size] = ed_retain(dy);
    return list;
}

static void keep_worse(check *worst, const check *c)
{
    int64_t compared = worst->compared + c->compared;
    if (c->compared && (c->ratio > worst->ratio || !worst->compared)) *worst = *c;
    worst->compared = compared;
}

/* Updates the worst element of the first order by that of the second. */
static bool run_second(check *worst)
{
    check inner = *worst;
    ed_list *inputs = inputs_and_dy(&inner);
    if (!inputs) return false;
    for (int64_t k = 0; k < inner.inputs->size; k++) {
        if (!is_varied(inner.inputs->items[k])) continue;
        inner.of = k;
        check c = {.f = gradient_of_f,
                   .user = &inner,
                   .inputs = inputs,
                   .options = inner.options,
                   .order = 2,
                   .of = k};
        if (!call_function(&c)) return false;
        keep_worse(worst, &c);
    }
    return true;
}

/* ---- The report ------------------------------------------------------------------------------ */

typedef struct report_object {
    ed_object object;
    char s[512];
} report_object;

static void report_destroy(void *object)
{
    memory_free(object);
}

static const object_class report_class = {.name = "report", .destroy = report_destroy};

static bool write_report(const check *c, const char **report)
{
    report_object *r = object_new(&report_class, sizeof *r);
    if (!r || !scope_give(r)) return false;
    *report = r->s;
    if (!c->compared) {
        snprintf(r->s, sizeof r->s, "nothing to compare: the inputs or the output are empty");
        return true;
    }
    int n = c->order == 1
                ? snprintf(r->s, sizeof r->s, "output element %lld", text_nth(c->row))
                : snprintf(r->s, sizeof r->s, "gradient of input %lld, element %s", text_nth(c->of),
                           text_of_element(c->inputs->items[c->of], c->row).s);
    char input[32];
    snprintf(input, sizeof input, "input %lld", text_nth(c->input));
    bool is_dy = c->order == 2 && c->input == c->inputs->size - 1;
    snprintf(r->s + n, sizeof r->s - (size_t)n,
             " by %s, element %s: the tape has %.12g, finite differences have %.12g: the error "
             "is %.3g, the tolerance %.3g; the worst of %lld elements",
             is_dy ? "the output's gradient" : input,
             text_of_element(c->inputs->items[c->input], c->column).s, c->tape, c->difference,
             fabs(c->tape - c->difference), c->allowed, (long long)c->compared);
    return true;
}

/* ---- The public function --------------------------------------------------------------------- */

static bool check_arguments(ed_function f, const ed_list *inputs)
{
    if (NULL_GIVEN("check_gradient", f, inputs)) return false;
    bool any = false;
    for (int64_t i = 0; i < inputs->size; i++) {
        const ed_tensor *x = inputs->items[i];
        if (!x)
            return ed_fail(ED_INVALID_ARGUMENT, "check_gradient: input %lld is NULL", text_nth(i));
        if (ed_dtype_is_float(x->dtype) && !is_varied(x))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "check_gradient: input %lld must be float64 (see ed_cast), got %s",
                           text_nth(i), text_of_tensor(x).s),
                   false;
        any |= is_varied(x);
    }
    if (!any)
        return ed_fail(ED_INVALID_ARGUMENT, "check_gradient: at least one input must be float64");
    return true;
}

/* Variables stand for their present values, so that a function that reads its inputs sees what is
 * varied. What is given twice is two inputs. */
static ed_list *values_of(const ed_list *inputs)
{
    ed_list *list = list_new(inputs->size);
    if (!list) return NULL;
    bool ok = true;
    for (int64_t i = 0; ok && i < list->size; i++) {
        const ed_tensor *x = tensor_read(inputs->items[i]);
        ok = x && (list->items[i] = tensor_view(x, x->rank, x->shape, x->strides, 0));
    }
    return scope_give(list) && ok ? list : NULL;
}

static bool check_all(check *c, const char **report)
{
    ED_SCOPE;
    c->inputs = values_of(c->inputs);
    if (!c->inputs || !call_function(c) || (c->options.second_order && !run_second(c)))
        return false;
    if (report && !write_report(c, report)) return false;
    if (report) ed_keep((char *)*report - offsetof(report_object, s));
    return c->ratio <= 1;
}

bool ed_check_gradient_with(ed_function f, ed_list *inputs, void *user, const char **report,
                            const ed_check_options *options)
{
    if (report) *report = "";
    options = CHECKED_OPTIONS("check_gradient", ED_CHECK_OPTIONS, options);
    if (!options || !check_arguments(f, inputs)) return false;
    check c = {.f = f, .user = user, .inputs = inputs, .options = *options, .order = 1};
    return check_all(&c, report);
}
