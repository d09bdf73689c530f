#include "ops/kernels/isa.h"
#include "tests/checks.h"
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one check's failures the first few tell enough. */
bool found(findings *f, const char *format, ...)
{
    enum { OF_ONE_CHECK = 4 };
    f->failures++;
    f->of_check = f->check == f->last_check ? f->of_check + 1 : 1;
    f->last_check = f->check;
    if (f->of_check > OF_ONE_CHECK || f->used + 1 >= sizeof f->text) return false;
    char message[1500], where[32] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (f->sample >= 0) snprintf(where, sizeof where, ", sample %d", f->sample);
    f->used += (size_t)snprintf(f->text + f->used, sizeof f->text - f->used, "%s (%s%s): %s\n",
                                f->op->name, f->check, where, message);
    if (f->used > sizeof f->text) f->used = sizeof f->text;
    return false;
}

/* ---- Operands -------------------------------------------------------------------------------- */

const ed_operand *check_operand(const ed_op *op, int i)
{
    int last = 0;
    while (last + 1 < ED_MAX_OPERANDS && op->operands[last + 1].name) last++;
    return &op->operands[i < last ? i : last];
}

bool check_is_closed(const ed_op *op)
{
    for (const ed_field *a = op->attrs; a && a->name; a++)
        if (a->type == ED_FIELD_OBJECT) return true;
    return false;
}

/* The dtypes that all operands of operand i's type letter take. */
static unsigned dtypes_of(const trial *t, int i)
{
    unsigned set = ED_SET_ALL;
    for (int j = 0; j < t->n; j++)
        if (check_operand(t->op, j)->type == check_operand(t->op, i)->type)
            set &= check_operand(t->op, j)->dtypes;
    return set;
}

bool trial_begin(findings *f, trial *t, int s, ed_dtype wanted)
{
    static const max_align_t zeros[64];
    const ed_op *op = f->op;
    if (!op->samples || op->samples[s].last) return false;
    const ed_sample *sample = &op->samples[s];
    const void *attrs = sample->attrs ? sample->attrs : op->defaults ? op->defaults : zeros;
    *t = (trial){.op = op, .sample = sample, .attrs = attrs};
    while (t->n < ED_MAX_OPERANDS && sample->inputs[t->n].given) t->n++;
    for (int i = 0; i < t->n; i++) {
        unsigned set = dtypes_of(t, i);
        t->dtype[i] = set & 1u << wanted ? wanted : set ? (ed_dtype)__builtin_ctz(set) : ED_FLOAT64;
        t->rank[i] = sample->inputs[i].rank;
        memcpy(t->shape[i], sample->inputs[i].shape, sizeof t->shape[i]);
    }
    f->sample = s;
    f->samples++;
    return true;
}

double random_unit(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool near_a_kink(const ed_op *op, double x)
{
    for (const double *k = op->kinks; k && !isnan(*k); k++)
        if (fabs(x - *k) < 1e-3) return true;
    return false;
}

/* Evenly drawn; of integers and bool whole numbers, negative ones where the dtype has them. */
static double draw(const ed_op *op, const ed_sample_input *in, ed_dtype dtype, uint64_t *state)
{
    if (ed_dtype_is_float(dtype)) {
        double x;
        int tries = 0;
        do x = in->low + (in->high - in->low) * random_unit(state);
        while (near_a_kink(op, x) && ++tries < 100);
        return x;
    }
    double low = ceil(in->low), high = floor(in->high);
    if (!dtype_holds(dtype, -1)) low = fmax(low, 0);
    if (high < low) return fmax(low, 0);
    double x = fmin(low + floor((high - low + 1) * random_unit(state)), high);
    return dtype == ED_BOOL ? x != 0 : x;
}

/* One value in each of `size` equal parts of the range, none near a border, in a random order. */
static void draw_distinct(const ed_op *op, const ed_sample_input *in, ed_tensor *x, uint64_t *state)
{
    double step = (in->high - in->low) / (double)(x->size ? x->size : 1), *v = (double *)x->data;
    for (int64_t i = 0; i < x->size; i++) {
        v[i] = in->low + step * ((double)i + 0.5 + 0.6 * (random_unit(state) - 0.5));
        if (near_a_kink(op, v[i])) v[i] += 2e-3 < step / 10 ? 2e-3 : 0;
    }
    for (int64_t i = x->size - 1; i > 0; i--) {
        int64_t j = (int64_t)(random_unit(state) * (double)(i + 1));
        double other = v[j];
        v[j] = v[i];
        v[i] = other;
    }
}

/* What the sample says of matrices: they are made symmetric, their diagonals strong. */
static void shape_matrices(const ed_sample_input *in, ed_tensor *x)
{
    if (x->rank < 2 || !x->size) return;
    int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1], least = m < n ? m : n;
    for (double *a = (double *)x->data; a < (double *)x->data + x->size; a += m * n) {
        for (int64_t i = 0; in->symmetric && m == n && i < n; i++)
            for (int64_t j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
        for (int64_t i = 0; in->banded && i < n; i++) a[m / 2 * n + i] += in->diagonal * (double)m;
        for (int64_t i = 0; !in->banded && i < least; i++)
            a[i * n + i] += in->diagonal * (double)least;
    }
}

/* A tensor in which the doubles are rounded to the dtype. */
static ed_tensor *rounded(const ed_tensor *values, ed_dtype dtype)
{
    if (dtype == ED_FLOAT64) return ed_retain((ed_tensor *)values);
    ed_tensor *x = tensor_new(dtype, values->rank, values->shape);
    for (int64_t i = 0; x && i < x->size; i++)
        dtype_store(dtype, x->data, i, ((const double *)values->data)[i]);
    return x;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

void trial_sort(trial *t)
{
    for (int i = 0; i < t->n; i++) {
        ed_tensor *x = t->x[i];
        if (!t->sample->inputs[i].sorted || !x->rank || !x->size) continue;
        const int64_t n = x->shape[x->rank - 1];
        double *all = ed_as_doubles(x);
        for (int64_t j = 0; all && j < x->size; j += n)
            qsort(all + j, (size_t)n, sizeof *all, compare_doubles);
        for (int64_t j = 0; all && j < x->size; j++) dtype_store(x->dtype, x->data, j, all[j]);
    }
}

bool trial_fill(trial *t)
{
    uint64_t state = 17;
    for (int i = 0; i < t->n; i++) {
        const ed_sample_input *in = &t->sample->inputs[i];
        ed_tensor *values = scope_give(tensor_new(ED_FLOAT64, t->rank[i], t->shape[i]));
        if (!values) return false;
        if (in->distinct && ed_dtype_is_float(t->dtype[i]))
            draw_distinct(t->op, in, values, &state);
        else
            for (int64_t j = 0; j < values->size; j++)
                ((double *)values->data)[j] = draw(t->op, in, t->dtype[i], &state);
        shape_matrices(in, values);
        t->x[i] = scope_give(rounded(values, t->dtype[i]));
        if (!t->x[i]) return false;
    }
    trial_sort(t);
    return true;
}

/* ---- Running --------------------------------------------------------------------------------- */

bool trial_infer(ed_call *call)
{
    return call->op->compose ? call->op->compose(call) : call->op->infer(call);
}

/* How many operands are written: what infer says; -1 with an error. */
static int count_writes(const trial *t)
{
    ed_call call;
    ed_call_room room;
    if (!ops_call_begin(&call, &room, t->op, t->x, t->n, t->attrs)) return -1;
    for (int i = 0; i < t->n; i++) call.inputs[i] = tensor_read(t->x[i]);
    int n = trial_infer(&call) ? call.n_writes : -1;
    for (int i = 0; i < call.n_outputs; i++) ed_release(call.outputs[i]);
    ops_call_end(&call);
    return n;
}

/* What is written are variables with the operands' values; the results are what they become. */
static ed_list *run_writing(const trial *t)
{
    ed_tensor *x[ED_MAX_OPERANDS], *y[ED_MAX_OPERANDS];
    int n = count_writes(t);
    memcpy(x, t->x, sizeof x);
    for (int i = 0; i < n; i++)
        if (!(x[i] = ed_variable_with(t->x[i], NULL))) return NULL;
    ed_list *outputs = n >= 0 ? ed_execute_list(t->op, x, t->n, t->attrs) : NULL;
    for (int i = 0; outputs && i < n; i++)
        if (!(y[i] = ed_value(x[i]))) return NULL;
    return outputs ? ed_list_concat(outputs, ed_list_make(y, n)) : NULL;
}

/* What of the outputs is unique; NULL for NULL, and with an error. */
static ed_list *unique_of(const ed_op *op, ed_list *outputs)
{
    ed_tensor *y[ED_MAX_OPERANDS];
    if (!outputs || !op->unique) return outputs;
    memcpy(y, outputs->items, (size_t)outputs->size * sizeof *y);
    return op->unique(y) ? ed_list_make(y, (int)outputs->size) : NULL;
}

ed_list *trial_run(const trial *t)
{
    if (t->op->operands[0].writes) return run_writing(t);
    return unique_of(t->op, ed_execute_list(t->op, t->x, t->n, t->attrs));
}

ed_list *trial_floats(const ed_list *y)
{
    ed_list *floats = y ? ed_list_make(y->items, y->size) : NULL;
    if (!floats) return NULL;
    int64_t n = 0;
    for (int64_t i = 0; i < floats->size; i++)
        if (ed_dtype_is_float(floats->items[i]->dtype))
            floats->items[n++] = floats->items[i];
        else
            ed_release(floats->items[i]);
    floats->size = n;
    return n ? floats : NULL;
}

double element_of(const ed_tensor *x, int64_t i)
{
    return dtype_load(x->dtype, tensor_read(x)->data, i);
}

ed_tensor *copy_of(const ed_tensor *x)
{
    ed_tensor *copy = tensor_new(x->dtype, x->rank, x->shape);
    if (copy) tensor_pack(tensor_read(x), copy->data);
    return scope_give(copy);
}

static ed_tensor *as_doubles(const ed_tensor *x)
{
    ed_tensor *packed = copy_of(x);
    ed_tensor *y = packed ? tensor_new(ED_FLOAT64, x->rank, x->shape) : NULL;
    for (int64_t i = 0; y && i < y->size; i++) ((double *)y->data)[i] = element_of(packed, i);
    return scope_give(y);
}

/* The outputs as what of them is unique. */
static bool infer_unique(ed_call *call)
{
    ed_tensor *y[ED_MAX_OPERANDS];
    if (!call->op->unique) return true;
    for (int i = 0; i < call->n_outputs; i++)
        if (!(y[i] = ed_zeros_like(call->outputs[i]))) return false;
    if (!call->op->unique(y)) return false;
    for (int i = 0; i < call->n_outputs; i++) {
        ed_release(call->outputs[i]);
        call->outputs[i] = ed_retain(y[i]);
    }
    return true;
}

/* A list of new tensors of float64 in the outputs' shapes, which become the call's outputs. */
static ed_list *replace_outputs(ed_call *call)
{
    ed_list *y = scope_give(list_new(call->n_outputs));
    for (int i = 0; i < call->n_outputs; i++) {
        ed_tensor *inferred = call->outputs[i];
        if (y) y->items[i] = tensor_new(ED_FLOAT64, inferred->rank, inferred->shape);
        if (y && !y->items[i]) y = NULL;
        ed_release(inferred);
        call->outputs[i] = y ? y->items[i] : NULL;
    }
    return y;
}

static bool infer_outputs(ed_call *call, const trial *t)
{
    memcpy(call->inputs, t->x, (size_t)t->n * sizeof *t->x);
    if (trial_infer(call) && infer_unique(call)) return true;
    for (int i = 0; i < call->n_outputs; i++) ed_release(call->outputs[i]);
    return false;
}

ed_list *trial_reference(const trial *t)
{
    ed_call call;
    ed_call_room room;
    if (!ops_call_begin(&call, &room, t->op, t->x, t->n, t->attrs)) return NULL;
    ed_list *y = infer_outputs(&call, t) ? replace_outputs(&call) : NULL;
    for (int i = 0; y && i < t->n; i++)
        if (!(call.inputs[i] = as_doubles(t->x[i]))) y = NULL;
    call.ready = false;
    bool ok = y && t->op->reference(&call);
    ed_list *written = ok ? ed_list_make(call.inputs, call.n_writes) : NULL;
    ops_call_end(&call);
    return ok ? ed_list_concat(y, written) : NULL;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

bool same_bits(const ed_tensor *a, const ed_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape))
        return false;
    ED_SCOPE;
    const void *x = ed_data(a), *y = ed_data(b);
    return x && y && !memcmp(x, y, (size_t)a->size * dtype_size(a->dtype));
}

/* What may lie between a result and the reference: rtol of the element, atol of the largest. */
typedef struct bound {
    double rtol, atol, largest;
} bound;

static bound bound_of(ed_dtype dtype, const ed_tensor *reference, int64_t terms)
{
    static const bound bounds[ED_DTYPE_COUNT] = {[ED_FLOAT64] = {1e-12, 1e-13, DBL_MAX},
                                                 [ED_FLOAT32] = {5e-6, 1e-6, FLT_MAX},
                                                 [ED_FLOAT16] = {0x1p-11, 0x1p-24, 65504},
                                                 [ED_BFLOAT16] = {0x1p-8, 0x1p-24, FLT_MAX}};
    bound b = bounds[dtype];
    double scale = 1;
    for (int64_t i = 0; i < reference->size; i++) {
        double r = fabs(element_of(reference, i));
        if (isfinite(r) && r < b.largest) scale = fmax(scale, r);
    }
    b.atol *= scale * sqrt(fmax(1, (double)terms / 1000)); /* roundings of long sums add up */
    b.rtol *= sqrt(fmax(1, (double)terms / 1000));
    return b;
}

static bool agrees(ed_dtype dtype, double y, double reference, const bound *b)
{
    switch (dtype) {
    case ED_BOOL: return y == (reference != 0);
    case ED_UINT8: return y == (double)(uint8_t)(int64_t)reference;
    case ED_INT32: return y == (double)(int32_t)(int64_t)reference;
    case ED_INT8: return y == (double)(int8_t)(int64_t)reference;
    case ED_INT16: return y == (double)(int16_t)(int64_t)reference;
    case ED_UINT16: return y == (double)(uint16_t)(int64_t)reference;
    case ED_UINT32: return y == (double)(uint32_t)(int64_t)reference;
    case ED_UINT64: return y == (reference < 0 ? (double)(uint64_t)(int64_t)reference : reference);
    case ED_INT64: return y == trunc(reference);
    default: break;
    }
    if (isnan(reference)) return isnan(y);
    if (fabs(reference) > b->largest * (1 - b->rtol) && isinf(y) && (y > 0) == (reference > 0))
        return true;
    if (!isfinite(reference) || !isfinite(y)) return y == reference;
    return fabs(y - reference) <= b->rtol * fabs(reference) + b->atol;
}

static bool compare_output(findings *f, const trial *t, const char *what, int k, const ed_tensor *y,
                           const ed_tensor *reference)
{
    if (y->rank != reference->rank ||
        memcmp(y->shape, reference->shape, (size_t)y->rank * sizeof *y->shape))
        return found(f, "%s: output %d is %s, infer says %s", what, k, text_of_tensor(y).s,
                     text_of_tensor(reference).s);
    const ed_tensor *packed = copy_of(y);
    int64_t terms = 0;
    for (int i = 0; i < t->n; i++)
        if (t->x[i]->size > terms) terms = t->x[i]->size;
    bound b = bound_of(y->dtype, reference, terms);
    for (int64_t i = 0; packed && i < y->size; i++) {
        double value = element_of(packed, i), wanted = element_of(reference, i);
        if (!agrees(y->dtype, value, wanted, &b))
            return found(f, "%s: output %d, %s, element %lld is %.17g, the reference says %.17g",
                         what, k, text_of_tensor(y).s, (long long)i, value, wanted);
    }
    return packed != NULL;
}

#ifdef __x86_64__
/* Whether the upper halves of vector registers are in use; they are not after `clean`. */
__attribute__((target("avx"))) static bool wide_in_use(bool clean)
{
    unsigned low, high;
    if (clean) __asm__ volatile("vzeroupper");
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low & 0x44;
}

/* The same where the processor tells, else false. An op that leaves them in use makes the scalar
 * code of whoever called it slower, on some processors thirty times. */
static bool leaves_wide(bool clean)
{
    static int tells = -1;
    unsigned a = 0, b, c, d;
    if (tells < 0)
        tells = __builtin_cpu_supports("avx") && __get_cpuid_count(13, 1, &a, &b, &c, &d) &&
                a & 4 && !wide_in_use(true);
    return tells && wide_in_use(clean);
}
#else
static bool leaves_wide(bool clean)
{
    return (void)clean, false;
}
#endif

/* What `t` gives beside the reference's outputs. */
static bool compare_with(findings *f, const trial *t, const ed_list *reference, const char *what)
{
    ED_SCOPE;
    f->checks++;
    leaves_wide(true);
    ed_list *y = trial_run(t);
    bool ok = !leaves_wide(false) || found(f, "%s: wide registers are left in use", what);
    ok = ok && (y || found(f, "%s: %s", what, ed_error()));
    if (ok && y->size != reference->size)
        ok = found(f, "%s: %lld outputs, infer says %lld", what, (long long)y->size,
                   (long long)reference->size);
    for (int k = 0; ok && k < y->size; k++)
        ok = compare_output(f, t, what, k, y->items[k], reference->items[k]);
    ed_clear_error();
    return ok;
}

bool trial_compare(findings *f, const trial *t, const char *what)
{
    ED_SCOPE;
    ed_list *reference = trial_reference(t);
    bool ok = reference;
    if (!ok) found(f, "%s: the reference fails: %s", what, ed_error());
    ed_clear_error();
    return ok && compare_with(f, t, reference, what);
}

void trial_compare_isas(findings *f, const trial *t, const char *what)
{
    ED_SCOPE;
    char where[128];
    int before = isa_level;
    ed_list *reference = trial_reference(t);
    bool ok = reference;
    if (!ok) found(f, "%s: the reference fails: %s", what, ed_error());
    ed_clear_error();
    for (int level = 0; ok && isa_set(level); level++) {
        snprintf(where, sizeof where, "%s, %s", what, isa_name(level));
        ok = compare_with(f, t, reference, where);
    }
    isa_set(before);
}
