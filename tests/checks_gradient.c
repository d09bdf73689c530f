#include "tests/checks.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The tape against differences ------------------------------------------------------------ */

bool check_differentiates(const struct trial *t, int i)
{
    return ed_dtype_is_float(t->dtype[i]) && !check_operand(t->op, i)->no_gradient;
}

/* A call as a function of its operands: output k, or of the first operand in both first places.
 * Float operands without gradient stay as they are. */
typedef struct function {
    const trial *t;
    int output;
    bool twice;
} function;

/* The last two axes change places. */
static ed_tensor *swapped(ed_tensor *x)
{
    int64_t perm[ED_MAX_RANK];
    const int rank = ed_rank(x);
    for (int i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return ed_transpose(x, .perm = {perm, rank});
}

static bool stays(const trial *t, int i)
{
    return ed_dtype_is_float(t->dtype[i]) && !check_differentiates(t, i);
}

static ed_tensor *call(ed_list *inputs, void *user)
{
    const function *self = user;
    trial t = *self->t;
    for (int i = 0, k = 0; i < t.n; i++) {
        if (stays(&t, i)) continue;
        t.x[i] = ed_list_get(inputs, self->twice && i > 0 ? k - 1 : k);
        if (t.sample->inputs[i].symmetric) t.x[i] = ed_mul(ed_add(t.x[i], swapped(t.x[i])), 0.5);
        k++;
    }
    const ed_list *y = trial_run(&t);
    return y ? scope_give(ed_retain(y->items[self->output])) : NULL;
}

static bool has_float(const trial *t)
{
    for (int i = 0; i < t->n; i++)
        if (check_differentiates(t, i)) return true;
    return false;
}

/* The options for an op: of large samples some elements only. */
static ed_check_options options_of(const ed_op *op)
{
    double tolerance = op->tolerance > 0 ? op->tolerance : 1e-6;
    ed_check_options o = ED_NEW_OPTIONS(ED_CHECK_OPTIONS, ed_check_options);
    o.rtol = tolerance;
    o.atol *= tolerance / 1e-6;
    o.second_order = !(op->flags & ED_OP_FIRST_ORDER);
    o.limit = CHECK_THOROUGH ? 30 : 10;
    return o;
}

static void check_output(findings *f, const trial *t, int output, bool twice)
{
    ED_SCOPE;
    function self = {t, output, twice};
    if (t->op->flags & ED_OP_LAW_GRADIENT) return;
    ed_check_options options = options_of(t->op);
    const char *report;
    ed_tensor *x[ED_MAX_OPERANDS];
    int n = 0;
    for (int i = twice; i < t->n; i++)
        if (!stays(t, i)) x[n++] = t->x[i];
    ed_list *inputs = ed_list_make(x, n);
    f->checks++;
    if (!ed_check_gradient_with(call, inputs, &self, &report, &options))
        found(f, "gradient%s of output %d: %s%s", twice ? " with the same tensor twice" : "",
              output, report, ed_error());
    ed_clear_error();
}

/* Gradients of the float outputs by the operands in the mask; NULL where there are none. */
static bool gradients(const trial *t, unsigned mask, ed_tensor **dx)
{
    ed_tape *tape = ed_tape_begin(.persistent = true);
    for (int i = 0; tape && i < t->n; i++)
        if (mask >> i & 1 && !ed_watch(tape, t->x[i])) return false;
    ed_list *y = tape ? trial_floats(trial_run(t)) : NULL;
    if (!y) return false;
    for (int i = 0; i < t->n; i++)
        dx[i] = mask >> i & 1 ? ed_gradient_tensor(tape, y, t->x[i], NULL) : NULL;
    return ed_tape_stop(tape) && !ed_failed(); /* the next tape is alone, not within this one */
}

/* Watching one operand alone gives the bits that watching all of them gives. */
static void check_each_alone(findings *f, const trial *t)
{
    ED_SCOPE;
    unsigned all = 0;
    ed_tensor *together[ED_MAX_OPERANDS], *alone[ED_MAX_OPERANDS];
    for (int i = 0; i < t->n; i++) all |= (unsigned)check_differentiates(t, i) << i;
    bool ok = gradients(t, all, together);
    for (int i = 0; ok && i < t->n; i++) {
        if (!(all >> i & 1)) continue;
        ok = gradients(t, 1u << i, alone);
        if (!ok) break;
        EXPECT(f, !together[i] == !alone[i] && (!alone[i] || same_bits(together[i], alone[i])),
               "the gradient of %s depends on who else is watched", check_operand(t->op, i)->name);
    }
    EXPECT(f, ok, "gradient of a %s call: %s", ed_dtype_name(t->dtype[0]), ed_error());
    ed_clear_error();
}

/* Empty tensors have empty gradients, or those of whatever is left are zero; nothing fails. */
static void check_empty(findings *f, int s)
{
    ED_SCOPE;
    trial t;
    ed_tensor *dx[ED_MAX_OPERANDS];
    if (!trial_begin(f, &t, s, ED_FLOAT64) || !t.rank[0]) return;
    int64_t extent = t.shape[0][0];
    for (int i = 0; i < t.n; i++)
        for (int d = 0; d < t.rank[i]; d++)
            if (t.shape[i][d] == extent) t.shape[i][d] = 0;
    if (!trial_fill(&t)) return;
    unsigned all = 0;
    for (int i = 0; i < t.n; i++) all |= (unsigned)check_differentiates(&t, i) << i;
    if (trial_floats(trial_run(&t)))
        EXPECT(f, gradients(&t, all, dx), "the gradient of an empty call: %s", ed_error());
    ed_clear_error();
}

/* The other float dtypes that the op takes have gradients too. */
static void check_other_floats(findings *f, int s)
{
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT16, ED_BFLOAT16};
    for (int d = 0; d < 3; d++) {
        ED_SCOPE;
        trial t;
        bool other = false;
        if (!trial_begin(f, &t, s, dtypes[d])) return;
        for (int i = 0; i < t.n; i++) other |= t.dtype[i] == dtypes[d];
        if (!other || !trial_fill(&t)) continue;
        if (trial_floats(trial_run(&t))) check_each_alone(f, &t);
        ed_clear_error();
    }
}

/* ---- The refusal ----------------------------------------------------------------------------- */

/* Asking for a gradient is an error; through what writes or stops gradients there is just none. */
static void check_refusal(findings *f, const trial *t)
{
    const bool none = t->op->operands[0].writes || t->op->flags & ED_OP_STOPS;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *x = NULL;
    for (int i = 0; tape && i < t->n; i++)
        if (ed_dtype_is_float(t->dtype[i])) x = ed_watch(tape, t->x[i]);
    ed_list *y = x ? trial_floats(trial_run(t)) : NULL;
    if (y) {
        ed_tensor *dx = ed_gradient_tensor(tape, y, x, NULL);
        bool refused = ed_error_kind() == ED_UNIMPLEMENTED && strstr(ed_error(), t->op->name);
        EXPECT(f, !dx && (none ? !ed_failed() : refused),
               "asking for a gradient that it has not must be an error that names it, not: %s",
               ed_failed() ? ed_error()
               : dx        ? "a gradient"
                           : "nothing");
    }
    ed_clear_error();
}

/* Asking for the gradient of an operand that has none is an error that names it. */
static void check_refused_operands(findings *f, const trial *t)
{
    for (int i = 0; i < t->n; i++) {
        if (!stays(t, i)) continue;
        ED_SCOPE;
        ed_tensor *dx[ED_MAX_OPERANDS];
        EXPECT(f,
               !gradients(t, 1u << i, dx) && ed_error_kind() == ED_UNIMPLEMENTED &&
                   strstr(ed_error(), t->op->name),
               "the gradient of %s must be an error that names the op, not: %s",
               check_operand(t->op, i)->name, ed_error());
        ed_clear_error();
    }
}

/* Whether output k is for the gradient function alone. */
static bool is_kept(const ed_op *op, int64_t k)
{
    return op->results && !(op->flags & ED_OP_MANY_OUTPUTS) && op->results[k].kept;
}

/* Whether the first operand may stand in the second's place too. */
static bool is_alike(const trial *t)
{
    const ed_sample_input *a = &t->sample->inputs[0], *b = &t->sample->inputs[1];
    return t->n > 1 && !stays(t, 0) && !stays(t, 1) && t->dtype[1] == t->dtype[0] &&
           t->rank[0] == t->rank[1] && !memcmp(t->shape[0], t->shape[1], sizeof t->shape[0]) &&
           a->low == b->low && a->high == b->high && !a->distinct;
}

void check_gradient(findings *f)
{
    trial t;
    for (int s = 0; trial_begin(f, &t, s, ED_FLOAT64); s++) {
        ED_SCOPE;
        if (!has_float(&t) || !trial_fill(&t)) continue;
        if (f->op->no_gradient) {
            check_refusal(f, &t);
            continue;
        }
        const ed_list *y = trial_run(&t);
        if (!EXPECT(f, y, "%s", ed_error())) {
            ed_clear_error();
            continue;
        }
        for (int k = 0; k < y->size; k++) {
            if (y->items[k]->dtype != ED_FLOAT64 || is_kept(f->op, k)) continue;
            check_output(f, &t, k, false);
            if (is_alike(&t)) check_output(f, &t, k, true);
        }
        if (trial_floats(y)) check_each_alone(f, &t);
        check_refused_operands(f, &t);
        check_empty(f, s);
        check_other_floats(f, s);
    }
}

/* ---- The checks are checked ------------------------------------------------------------------ */

/*
 * A copy of a definition is damaged in one way, and the check that should notice is run on it. What
 * the damage does not change (1.01 times 0 is 0) nobody can notice, so the damage tells whether it
 * changed anything.
 */
typedef enum damage {
    GRADIENT_SCALED,
    GRADIENT_ELEMENT,
    GRADIENT_SWAPPED,
    GRADIENT_DROPPED,
    GRADIENTS_DAMAGES,
    FORWARD_ELEMENT = GRADIENTS_DAMAGES,
    DAMAGES
} damage;

static const char *const damage_names[DAMAGES] = {
    "a gradient times 1.01", "one element of a gradient off by 0.01",
    "gradients of two operands swapped", "the gradient of the last operand dropped",
    "one element of the output off"};

static struct {
    const ed_op *whole;
    damage damage;
    bool changed;
} broken;

/* dx with one element, or each, changed; noted if it is more than the checks allow. */
static ed_tensor *spoiled(ed_tensor *dx, double factor, double first_plus)
{
    ed_tensor *copy = copy_of(dx);
    for (int64_t i = 0; copy && i < copy->size; i++) {
        double old = element_of(copy, i), new = old *factor + (i ? 0 : first_plus);
        broken.changed |= fabs(new - old) > 1e-3 * fabs(old) + 1e-4 && i == 0;
        dtype_store(copy->dtype, copy->data, i, new);
    }
    return copy;
}

static bool differ(const ed_tensor *a, const ed_tensor *b)
{
    ED_SCOPE;
    const ed_tensor *x = copy_of(a), *y = copy_of(b);
    return x && y && x->size && fabs(element_of(x, 0) - element_of(y, 0)) > 1e-3;
}

static void swap(const ed_gradient_call *g)
{
    for (int i = 0; i < g->n_inputs; i++)
        for (int j = 0; j < i; j++) {
            ed_tensor *a = g->dx[i], *b = g->dx[j];
            if (!a || !b || a->dtype != b->dtype || a->rank != b->rank ||
                memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape))
                continue;
            broken.changed |= differ(a, b);
            g->dx[i] = b;
            g->dx[j] = a;
            return;
        }
}

static void drop_last(const ed_gradient_call *g)
{
    for (int i = g->n_inputs - 1; i >= 0; i--) {
        if (!g->dx[i]) continue;
        ED_SCOPE;
        const ed_tensor *x = copy_of(g->dx[i]);
        broken.changed |= x && x->size && fabs(element_of(x, 0)) > 1e-3;
        g->dx[i] = NULL;
        return;
    }
}

static bool broken_gradient(const ed_gradient_call *g)
{
    ed_gradient_call whole = *g;
    whole.op = broken.whole;
    if (!broken.whole->gradient(&whole)) return false;
    for (int i = 0; i < g->n_inputs; i++) /* the calls that are compared with differences */
        if (ed_dtype_is_float(g->dtypes[i]) && !check_operand(g->op, i)->no_gradient &&
            (g->dtypes[i] != ED_FLOAT64 || !g->needs[i]))
            return true;
    if (broken.damage == GRADIENT_SWAPPED) swap(g);
    if (broken.damage == GRADIENT_DROPPED) drop_last(g);
    for (int i = 0; i < g->n_inputs; i++) {
        if (!g->dx[i]) continue;
        if (broken.damage == GRADIENT_SCALED) g->dx[i] = spoiled(g->dx[i], 1.01, 0);
        if (broken.damage == GRADIENT_ELEMENT) g->dx[i] = spoiled(g->dx[i], 1, 0.01);
    }
    return true;
}

/* The last output, of those there are. */
static void spoil_output(ed_call *call)
{
    ed_tensor *y = call->n_outputs  ? call->outputs[call->n_outputs - 1]
                   : call->n_writes ? call->inputs[0]
                                    : NULL;
    int64_t at = y ? y->size / 2 : 0;
    if (!y || !y->size || !(y = tensor_read(y))) return;
    double old = element_of(y, at);
    if (y->dtype == ED_BOOL)
        dtype_store(ED_BOOL, y->data, at, !old);
    else
        dtype_store(y->dtype, y->data, at,
                    old + 1e-2 * fmax(1, fabs(old)) + !ed_dtype_is_float(y->dtype));
    broken.changed |= element_of(y, at) != old;
}

static bool broken_kernel(ed_call *call)
{
    if (!broken.whole->kernel(call)) return false;
    spoil_output(call);
    return true;
}

/* What others hold, too, is replaced by memory of its own. */
static bool spoil_copy(ed_call *call)
{
    ed_tensor **last = &call->outputs[call->n_outputs - 1], *whole = *last;
    ed_tensor *copy = tensor_new(whole->dtype, whole->rank, whole->shape);
    if (copy) tensor_pack(whole, copy->data);
    ed_release(whole);
    if (!(*last = copy)) return false;
    spoil_output(call);
    return true;
}

/* Of ops that only make views: the view. */
static bool broken_infer(ed_call *call)
{
    if (!broken.whole->infer(call)) return false;
    return call->ready && call->n_outputs ? spoil_copy(call) : true;
}

static bool broken_composition(ed_call *call)
{
    return broken.whole->compose(call) && spoil_copy(call);
}

static void check_damage(findings *f, damage which)
{
    ed_op op = *f->op;
    findings own = {.op = &op, .check = f->check};
    broken.whole = f->op;
    broken.damage = which;
    broken.changed = false;
    if (which < GRADIENTS_DAMAGES) {
        op.gradient = broken_gradient;
        check_gradient(&own);
    } else {
        op.kernel = op.kernel ? broken_kernel : NULL;
        op.infer = op.infer ? broken_infer : NULL;
        op.compose = op.compose ? broken_composition : NULL;
        check_forward(&own);
    }
    f->sample = -1;
    EXPECT(f, own.failures || !broken.changed, "%s is not noticed", damage_names[which]);
    if (which == GRADIENT_ELEMENT || which == FORWARD_ELEMENT)
        EXPECT(f, broken.changed, "no sample shows %s", damage_names[which]);
}

void check_checks(findings *f)
{
    if (!f->op->samples || !f->op->reference) return;
    check_damage(f, FORWARD_ELEMENT);
    const bool compared = f->op->gradient && !(f->op->flags & ED_OP_LAW_GRADIENT);
    for (int d = 0; compared && d < GRADIENTS_DAMAGES; d++) check_damage(f, (damage)d);
}
