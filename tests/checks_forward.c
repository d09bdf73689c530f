#include "tests/checks.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- The definition -------------------------------------------------------------------------- */

void check_definition(findings *f)
{
    const ed_op *op = f->op;
    EXPECT(f, op->doc && *op->doc, "no line of documentation");
    EXPECT(f, op->compose ? !op->gradient : !op->gradient != !op->no_gradient,
           "either gradient or no_gradient is needed");
    EXPECT(f, !op->infer != !op->compose, "either infer or compose is needed");
    EXPECT(f, !op->no_gradient || *op->no_gradient, "no_gradient gives no reason");
    for (const ed_field *a = op->attrs; a && a->name; a++)
        EXPECT(f, a->doc && a->offset < op->attrs_size, "attribute %s lacks words or room",
               a->name);
    if (check_is_closed(op)) return;
    EXPECT(f, op->samples && !op->samples[0].last, "no samples");
    EXPECT(f, op->reference, "no reference");
}

/* ---- Dtypes ---------------------------------------------------------------------------------- */

/* The instruction sets and their tails are exercised by check_shapes; here: the samples as they
 * are. */
void check_forward(findings *f)
{
    static const ed_dtype wanted[] = {ED_FLOAT64, ED_FLOAT32};
    for (int d = 0; d < 2; d++) {
        ED_SCOPE;
        trial t;
        for (int s = 0; trial_begin(f, &t, s, wanted[d]); s++)
            if (trial_fill(&t)) trial_compare(f, &t, ed_dtype_name(wanted[d]));
    }
}

/* An error is kept, and it names the op. */
static bool refused(findings *f, const trial *t, const char *what)
{
    ED_SCOPE;
    size_t n = strlen(t->op->name);
    f->checks++;
    bool ok = !trial_run(t) || found(f, "%s: must be an error", what);
    ok = ok && (ed_failed() || found(f, "%s: refused without an error", what));
    ok = ok && (!strncmp(ed_error(), t->op->name, n) ||
                found(f, "%s: the error does not name the op: %s", what, ed_error()));
    ed_clear_error();
    return ok;
}

/* Operand `first` and its like in dtype d: it works in some sample and agrees, or is refused. */
static void check_dtype(findings *f, int first, ed_dtype d)
{
    char type = check_operand(f->op, first)->type, what[96], error[200] = "";
    bool worked = false, claimed = true;
    trial t;
    for (int s = 0; trial_begin(f, &t, s, ED_FLOAT64); s++) {
        ED_SCOPE;
        bool there = false; /* an optional operand may be absent */
        for (int i = 0; i < t.n; i++)
            if (check_operand(f->op, i)->type == type) {
                there = true;
                t.dtype[i] = d;
                claimed &= check_operand(f->op, i)->dtypes >> d & 1;
            }
        if (!there) continue;
        snprintf(what, sizeof what, "%s as %s", check_operand(f->op, first)->name,
                 ed_dtype_name(d));
        if (!trial_fill(&t)) return;
        if (!claimed) {
            refused(f, &t, what);
            continue;
        }
        bool ok = trial_run(&t);
        if (!ok) snprintf(error, sizeof error, "%s", ed_error());
        ed_clear_error();
        worked |= ok;
        if (ok) trial_compare(f, &t, what);
    }
    if (claimed) EXPECT(f, worked, "%s is claimed but never works: %s", what, error);
}

/* Operand i in a dtype that its fellows don't have. */
static void check_mixing(findings *f, int s, int i)
{
    trial t;
    if (!trial_begin(f, &t, s, ED_FLOAT64) || i >= t.n) return;
    const ed_operand *mine = check_operand(f->op, i);
    bool alone = true;
    for (int j = 0; j < t.n; j++) alone &= j == i || check_operand(f->op, j)->type != mine->type;
    if (alone || !mine->type) return;
    for (int d = 1; d < ED_DTYPE_COUNT; d++) {
        ED_SCOPE;
        char what[96];
        if (!trial_begin(f, &t, s, ED_FLOAT64)) return;
        if (t.dtype[i] == (ed_dtype)d) continue;
        t.dtype[i] = (ed_dtype)d;
        snprintf(what, sizeof what, "%s alone as %s", mine->name, ed_dtype_name((ed_dtype)d));
        if (trial_fill(&t)) refused(f, &t, what);
    }
}

void check_dtypes(findings *f)
{
    trial t;
    if (!trial_begin(f, &t, 0, ED_FLOAT64)) return;
    int n = t.n;
    for (int i = 0; i < n; i++) {
        bool first = true;
        for (int j = 0; j < i; j++)
            first &= check_operand(f->op, j)->type != check_operand(f->op, i)->type;
        for (int d = 1; first && d < ED_DTYPE_COUNT; d++) check_dtype(f, i, (ed_dtype)d);
        check_mixing(f, 0, i);
    }
}

/* ---- Layouts --------------------------------------------------------------------------------- */

/* How a tensor's elements lie in memory: a step along each axis, gaps around,
 * axes in which order. */
typedef struct layout {
    const char *name;
    int step, last_step, gap;
    bool reversed_axes;
} layout;

static const layout layouts[] = {
    {"every second element", 2, 2, 0, false},
    {"transposed", 1, 1, 0, true},
    {"backwards", -1, -1, 0, false},
    {"a slice", 1, 1, 1, false},
    {"backwards by two, transposed", 1, -2, 1, true},
    {"rows apart", 1, 1, 3, false},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* A view of new memory, otherwise full of NaN, that holds the elements of contiguous x in this
 * layout. */
static ed_tensor *lay_out(const ed_tensor *x, const layout *l)
{
    int gap = x->rank > 4 && l->gap ? 1 : l->gap; /* gaps multiply */
    int64_t strides[ED_MAX_RANK], at[ED_MAX_RANK] = {0}, size = 1, offset = gap;
    for (int k = 0; k < x->rank; k++) {
        int d = l->reversed_axes ? k : x->rank - 1 - k;
        int step = d == x->rank - 1 ? l->last_step : l->step, far = step < 0 ? -step : step;
        strides[d] = size * step;
        offset += size * (gap + (step < 0 && x->shape[d] ? (x->shape[d] - 1) * far : 0));
        size *= far * x->shape[d] + 2 * gap;
    }
    size_t element = dtype_size(x->dtype);
    ed_tensor *room = scope_give(tensor_new(x->dtype, 1, &(int64_t){size + 2 * gap}));
    if (!room) return NULL;
    memset(room->data, x->dtype == ED_BOOL ? 1 : 0xff, (size_t)room->size * element);
    char *first = room->data + offset * (int64_t)element;
    for (int64_t i = 0; i < x->size; i++) {
        int64_t to = 0;
        for (int d = 0; d < x->rank; d++) to += at[d] * strides[d];
        memcpy(first + to * (int64_t)element, x->data + i * (int64_t)element, element);
        for (int d = x->rank - 1; d >= 0 && ++at[d] == x->shape[d]; d--) at[d] = 0;
    }
    return scope_give(tensor_view(room, x->rank, x->shape, strides, x->size ? offset : 0));
}

/* An error if the plain call had one and gave NULL, else the same bits as it gave. */
static bool expect_same(findings *f, const trial *t, const ed_list *wanted, const char *what)
{
    ED_SCOPE;
    ed_list *y = trial_run(t);
    bool ok = true;
    f->checks++;
    if (!y != !wanted)
        ok = found(f, "%s: %s where the plain call %s: %s", what, y ? "works" : "fails",
                   wanted ? "works" : "fails", ed_error());
    else if (y && y->size != wanted->size)
        ok = found(f, "%s: %lld outputs, the plain call has %lld", what, (long long)y->size,
                   (long long)wanted->size);
    for (int k = 0; ok && y && k < y->size; k++)
        if (!same_bits(y->items[k], wanted->items[k]))
            ok = found(f, "%s: output %d, %s, differs from the plain call's", what, k,
                       text_of_tensor(y->items[k]).s);
    ed_clear_error();
    return ok;
}

/* All operands (which < 0) or one of them in another layout. */
static bool check_layout(findings *f, const trial *plain, const ed_list *wanted, const layout *l,
                         int which)
{
    ED_SCOPE;
    trial t = *plain;
    char what[96];
    for (int i = 0; i < t.n; i++)
        if ((which < 0 || i == which) && !(t.x[i] = lay_out(plain->x[i], l))) return false;
    snprintf(what, sizeof what, "%s %s", which < 0 ? "all" : check_operand(t.op, which)->name,
             l->name);
    return expect_same(f, &t, wanted, what);
}

/* Operand i with every index along the axis (or, negative, all axes) leading
 * to the same elements. */
static ed_tensor *repeat(const ed_tensor *x, int axis)
{
    int64_t strides[ED_MAX_RANK];
    for (int d = 0; d < x->rank; d++) strides[d] = axis < 0 || d == axis ? 0 : x->strides[d];
    return scope_give(tensor_view(x, x->rank, x->shape, strides, 0));
}

static void check_repeated(findings *f, const trial *plain, int i, int axis)
{
    ED_SCOPE;
    trial t = *plain;
    ed_tensor *view = repeat(plain->x[i], axis);
    if (!view || !(t.x[i] = copy_of(view))) return;
    ed_list *y = trial_run(&t);
    ed_clear_error();
    t.x[i] = view;
    expect_same(f, &t, y, "one operand with stride 0");
}

static void check_all_layouts(findings *f, const trial *t, bool thoroughly)
{
    ED_SCOPE;
    ed_list *y = trial_run(t);
    ed_clear_error();
    for (int l = 0; l < LAYOUTS; l++)
        for (int which = -1; which < (thoroughly && t->n > 1 ? t->n : 0); which++)
            check_layout(f, t, y, &layouts[l], which);
    for (int i = 0; thoroughly && i < t->n; i++)
        for (int axis = -1; axis < t->rank[i]; axis++)
            if (t->x[i]->size) check_repeated(f, t, i, axis);
    for (int i = 1; thoroughly && i < t->n; i++) { /* the same tensor twice */
        trial twice = *t;
        if (t->dtype[i] != t->dtype[0]) continue;
        if (!(twice.x[i] = copy_of(t->x[0]))) continue;
        ed_list *z = trial_run(&twice);
        ed_clear_error();
        twice.x[i] = t->x[0];
        expect_same(f, &twice, z, "the same tensor twice");
    }
}

void check_layouts(findings *f)
{
    for (int d = 1; d < ED_DTYPE_COUNT; d++) {
        trial t;
        for (int s = 0; trial_begin(f, &t, s, (ed_dtype)d); s++) {
            ED_SCOPE;
            bool new = d == ED_FLOAT64; /* others only where the op takes them */
            for (int i = 0; i < t.n; i++) new |= t.dtype[i] == (ed_dtype)d;
            if (new &&trial_fill(&t)) check_all_layouts(f, &t, true);
        }
    }
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* Every extent `from` of every operand becomes `to`, so that related extents stay related. */
static void replace_extent(trial *t, int64_t from, int64_t to)
{
    for (int i = 0; i < t->n; i++)
        for (int d = 0; d < t->rank[i]; d++)
            if (t->shape[i][d] == from) t->shape[i][d] = to;
}

/* Whether the call passes the shape rule; *largest: elements of the largest tensor. Tried on memory
 * that is never touched. */
static bool infers(const trial *t, int64_t *largest)
{
    ED_SCOPE;
    ed_call call;
    ed_call_room room;
    bool ok = ops_call_begin(&call, &room, t->op, t->x, t->n, t->attrs);
    if (!ok) return false;
    *largest = 0;
    for (int i = 0; ok && i < t->n; i++) {
        ed_tensor *x = scope_give(tensor_new(t->dtype[i], t->rank[i], t->shape[i]));
        ok = (call.inputs[i] = x) != NULL;
        if (ok && x->size > *largest) *largest = x->size;
    }
    ok = ok && trial_infer(&call);
    for (int k = 0; k < call.n_outputs; k++) {
        if (ok && call.outputs[k]->size > *largest) *largest = call.outputs[k]->size;
        ed_release(call.outputs[k]);
    }
    ops_call_end(&call);
    ed_clear_error();
    return ok;
}

/* Threads 1, 2 and 3 give the same bits. */
static void check_threads(findings *f, const trial *t)
{
    ED_SCOPE;
    int before = ed_num_threads();
    ed_set_num_threads(1);
    ed_list *y = trial_run(t);
    ed_clear_error();
    for (int n = 2; n <= 3; n++) {
        char what[32];
        ed_set_num_threads(n);
        snprintf(what, sizeof what, "%d threads", n);
        expect_same(f, t, y, what);
    }
    ed_set_num_threads(before);
}

static bool runs(const trial *t)
{
    ED_SCOPE;
    bool ok = trial_run(t);
    ed_clear_error();
    return ok;
}

/* With one extent replaced: against the reference, in other layouts, and large ones on threads. */
static void check_extent(findings *f, int s, ed_dtype dtype, int64_t from, int64_t to, bool large)
{
    ED_SCOPE;
    trial t;
    char what[80];
    if (!trial_begin(f, &t, s, dtype)) return;
    replace_extent(&t, from, to);
    if (!trial_fill(&t)) return;
    if (!runs(&t)) {
        if (!large) check_all_layouts(f, &t, false);
        return;
    }
    snprintf(what, sizeof what, "%s with extent %lld for %lld", ed_dtype_name(dtype), (long long)to,
             (long long)from);
    trial_compare_isas(f, &t, what);
    check_all_layouts(f, &t, false);
    if (large) check_threads(f, &t);
}

/* The smallest extent, by powers of two, that makes some tensor large enough for threads; 0: none
 * does. */
static int64_t large_extent(findings *f, int s, ed_dtype dtype, int64_t from)
{
    trial t;
    for (int64_t to = 9; to < 1 << 17; to = 2 * to + 1) {
        int64_t largest;
        if (!trial_begin(f, &t, s, dtype)) return 0;
        replace_extent(&t, from, to);
        if (!infers(&t, &largest)) return 0;
        if (largest > OPS_PARALLEL_WORK + OPS_PARALLEL_WORK / 4) return to;
    }
    return 0;
}

/* All operands of rank 0, and all of the highest rank, by extents put in front. */
static void check_ranks(findings *f, int s, ed_dtype dtype)
{
    for (int highest = 0; highest < 2; highest++) {
        ED_SCOPE;
        trial t;
        if (!trial_begin(f, &t, s, dtype)) return;
        for (int i = 0; i < t.n; i++) {
            int more = highest ? ED_MAX_RANK - t.rank[i] : 0;
            if (!highest) t.rank[i] = 0;
            memmove(t.shape[i] + more, t.shape[i], (size_t)t.rank[i] * sizeof(int64_t));
            for (int d = 0; d < more; d++) t.shape[i][d] = 1 + d % 2;
            t.rank[i] += more;
        }
        if (!trial_fill(&t)) return;
        if (runs(&t)) trial_compare(f, &t, highest ? "rank 8" : "rank 0");
        check_all_layouts(f, &t, CHECK_THOROUGH);
    }
}

void check_shapes(findings *f)
{
    static const int64_t extents[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33};
    static const ed_dtype dtypes[] = {ED_FLOAT64, ED_FLOAT32, ED_INT32};
    trial t;
    /* On large extents, which are for threads; a slow reference is asked once. */
    clock_t spent = 0, most = CHECK_THOROUGH ? CLOCKS_PER_SEC / 2 : CLOCKS_PER_SEC / 50;
    for (int d = 0; d < 3; d++)
        for (int s = 0; trial_begin(f, &t, s, dtypes[d]); s++) {
            int64_t seen[ED_MAX_OPERANDS * ED_MAX_RANK];
            int n = 0;
            bool new = d == 0; /* a dtype that the op doesn't take brings nothing new */
            for (int i = 0; i < t.n; i++) new |= t.dtype[i] == dtypes[d];
            if (!new) continue;
            for (int i = 0; i < t.n; i++)
                for (int a = 0; a < t.rank[i]; a++) {
                    bool known = false;
                    for (int j = 0; j < n; j++) known |= seen[j] == t.shape[i][a];
                    if (!known) seen[n++] = t.shape[i][a];
                }
            check_ranks(f, s, dtypes[d]);
            for (int j = 0; j < n; j++) {
                for (size_t e = 0; e < sizeof extents / sizeof *extents; e += 2 - CHECK_THOROUGH)
                    check_extent(f, s, dtypes[d], seen[j], extents[e], false);
                /* A composition's ops have their own checks of threads. */
                const bool large = d < 2 && s < 3 && !f->op->compose && spent < most;
                int64_t to = large ? large_extent(f, s, dtypes[d], seen[j]) : 0;
                const clock_t begin = clock();
                if (to) check_extent(f, s, dtypes[d], seen[j], to, true);
                spent += clock() - begin;
            }
        }
}

/* ---- Extremes -------------------------------------------------------------------------------- */

static const double extremes[] = {400,    -400,    INFINITY, -INFINITY, NAN, 0.0, -0.0,
                                  5e-324, -5e-324, 1e-310,   1,         -1,  0.5};
enum { EXTREMES = sizeof extremes / sizeof *extremes };

/*
 * Every float operand is filled with extremes, each beginning at a place of its own, so that all
 * pairs of them meet.
 */
static void fill_extremes(trial *t, int round)
{
    for (int i = 0; i < t->n; i++) {
        ed_tensor *x = t->x[i];
        if (!ed_dtype_is_float(x->dtype)) continue;
        for (int64_t j = 0; j < x->size; j++)
            dtype_store(x->dtype, x->data, j, extremes[(j + round) % EXTREMES]);
        round = round / EXTREMES + round % 2;
    }
}

/* One element, of the first float operand or the next, the largest there is;
 * all others ordinary. */
static void fill_largest(trial *t, int round)
{
    int floats = 0;
    for (int i = 0; i < t->n; i++) floats += ed_dtype_is_float(t->x[i]->dtype);
    for (int i = 0, k = 0; i < t->n; i++) {
        ed_tensor *x = t->x[i];
        if (!ed_dtype_is_float(x->dtype) || k++ != round / 2 % floats || !x->size) continue;
        double largest = x->dtype == ED_FLOAT64 ? DBL_MAX : FLT_MAX;
        dtype_store(x->dtype, x->data, x->size / 2, round % 2 ? -largest : largest);
    }
}

/* The smallest and largest whole numbers: nothing is compared, but nothing may break. */
static void fill_whole_extremes(trial *t, int round)
{
    static const int64_t wide[] = {INT64_MIN, INT64_MAX, -1, 0, 1, INT32_MIN};
    static const int32_t narrow[] = {INT32_MIN, INT32_MAX, -1, 0, 1, 100};
    for (int i = 0; i < t->n; i++) {
        ed_tensor *x = t->x[i];
        for (int64_t j = 0; j < x->size; j++) {
            int at = (int)(j + round) % 6;
            if (x->dtype == ED_INT64) ((int64_t *)x->data)[j] = wide[at];
            if (x->dtype == ED_INT32) ((int32_t *)x->data)[j] = narrow[at];
            if (x->dtype == ED_UINT8) ((uint8_t *)x->data)[j] = (uint8_t)(at % 2 ? 255 : at);
        }
        round = round / 6 + round % 2;
    }
}

/* Forward and back, whatever comes: for what must only not break. */
static void run_both_ways(const trial *t)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *source = NULL;
    for (int i = 0; tape && i < t->n; i++)
        if (ed_dtype_is_float(t->x[i]->dtype)) source = ed_watch(tape, t->x[i]);
    ed_list *y = trial_floats(trial_run(t));
    if (source && y) (void)ed_gradient_tensor(tape, y, source, NULL);
    ed_clear_error();
}

void check_extremes(findings *f)
{
    static const ed_dtype dtypes[] = {ED_FLOAT64, ED_FLOAT32, ED_INT32, ED_INT64, ED_UINT8};
    trial t;
    for (int d = 0; d < 5; d++)
        for (int s = 0; trial_begin(f, &t, s, dtypes[d]); s++) {
            int floats = 0;
            for (int i = 0; i < t.n; i++) floats += ed_dtype_is_float(t.dtype[i]);
            int rounds = !floats || d > 1 ? 36 : floats < 2 ? EXTREMES : EXTREMES * EXTREMES;
            for (int round = 0; round < rounds + (d < 2 && floats ? 2 * floats : 0); round++) {
                ED_SCOPE;
                if (!trial_fill(&t)) return;
                if (d > 1 || !floats)
                    fill_whole_extremes(&t, round);
                else if (round < rounds)
                    fill_extremes(&t, round);
                else
                    fill_largest(&t, round - rounds);
                trial_sort(&t);
                run_both_ways(&t);
                f->checks++;
                if (d == 0 && floats && runs(&t))
                    trial_compare(f, &t, round < rounds ? "extremes" : "a largest number");
            }
        }
}
