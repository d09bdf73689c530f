#include "tests/checks.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Whatever comes: an error or a result ---------------------------------------------------- */

/* Seconds of the processor that a call with odd operands may take: a decomposition with its
 * gradient takes 2; a loop over an extent of 2^40 takes an hour. */
enum { LONG = 10 };

/* How many times as long an emulated machine takes: a decomposition 25 times. */
static double slowness(void)
{
    const char *emulator = getenv("EMULATOR");
    return emulator && *emulator ? 25 : 1;
}

/* What results of that size may take to be written, with a gradient as large: strides of 1000 make
 * 1e8 elements of a few. */
static double fill_seconds(const ed_list *y)
{
    double size = 0;
    for (int64_t i = 0; i < ed_list_size(y); i++)
        size += ed_list_get(y, i) ? (double)ed_size(ed_list_get(y, i)) : 0;
    return size / 1e7;
}

bool trial_survives(findings *f, const trial *t, const char *what)
{
    ED_SCOPE;
    const clock_t start = clock(); /* of all threads, not of other programs */
    ed_tape *tape = ed_tape_begin();
    ed_tensor *source = NULL;
    f->checks++;
    for (int i = 0; tape && i < t->n; i++)
        if (t->x[i] && ed_dtype_is_float(t->x[i]->dtype)) source = ed_watch(tape, t->x[i]);
    const ed_list *y = trial_run(t);
    bool ok = y;
    bool told = ok ? !ed_failed() : ed_failed() && *ed_error();
    if (!told) found(f, "%s: %s", what, ok ? "works with an error kept" : "fails without an error");
    ed_list *targets = trial_floats(y);
    if (targets && source && !f->op->no_gradient)
        (void)ed_gradient_tensor(tape, targets, source, NULL);
    ed_clear_error();
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (CHECK_THOROUGH && seconds > slowness() * (LONG + fill_seconds(y)))
        found(f, "%s: takes %.1f s", what, seconds);
    return ok;
}

static void fails(findings *f, const ed_op *op, ed_tensor *const *x, int n, const trial *t,
                  const char *what)
{
    ED_SCOPE;
    EXPECT(f, !ed_execute_list(op, x, n, t->attrs) && ed_failed(), "%s must be an error", what);
    EXPECT(f, strstr(ed_error(), op->name), "%s: the error does not name the op: %s", what,
           ed_error());
    ed_clear_error();
}

static void check_operands(findings *f, const trial *t)
{
    ed_tensor *x[ED_MAX_OPERANDS + 1];
    memcpy(x, t->x, sizeof t->x);
    x[t->n] = t->n ? t->x[0] : ed_scalar(1.0);
    for (int i = 0; i < t->n; i++) {
        x[i] = NULL;
        fails(f, t->op, x, t->n, t, "an operand that is NULL");
        x[i] = t->x[i];
    }
    if (t->n) fails(f, t->op, x, 0, t, "no operands");
    if (!(t->op->flags & ED_OP_VARIADIC)) {
        int required = t->n;
        while (required && check_operand(t->op, required - 1)->optional) required--;
        if (required) fails(f, t->op, x, required - 1, t, "an operand too few");
        fails(f, t->op, x, t->n + 1, t, "an operand too many");
    }
    EXPECT(f, !ed_execute_list(t->op, x, -1, t->attrs) && ed_failed(),
           "-1 operands must be an error");
    ed_clear_error();
    bool ok = ed_execute_list(t->op, NULL, t->n, t->attrs);
    EXPECT(f, !t->n || (!ok && ed_failed()), "NULL must be an error");
    ed_clear_error();
}

/* Operand i in every rank, of extents 2 and 1 and 0; others as they are, or (i < 0) in the same. */
static void check_ranks(findings *f, int s, int i)
{
    for (int rank = 0; rank <= ED_MAX_RANK; rank++)
        for (int extent = 0; extent <= 2; extent++) {
            ED_SCOPE;
            trial t;
            char what[64];
            if (!trial_begin(f, &t, s, ED_FLOAT64)) return;
            for (int k = 0; k < t.n; k++) {
                if (i >= 0 && k != i) continue;
                t.rank[k] = rank;
                for (int d = 0; d < rank; d++) t.shape[k][d] = extent;
            }
            snprintf(what, sizeof what, "rank %d, extents %d", rank, extent);
            if (trial_fill(&t)) trial_survives(f, &t, what);
        }
}

/* One extent of one operand is another, which for sanitizers need not be so large: a decomposition
 * takes them the cube of it. */
static void check_extents(findings *f, int s)
{
    static const int64_t others[] = {0, 1, 2, 5, CHECK_THOROUGH ? 1000 : 100};
    trial t;
    if (!trial_begin(f, &t, s, ED_FLOAT64)) return;
    for (int i = 0; i < t.n; i++)
        for (int d = 0; d < t.rank[i]; d++)
            for (int o = 0; o < 5; o++) {
                ED_SCOPE;
                trial other = t;
                char what[64];
                other.shape[i][d] = others[o];
                snprintf(what, sizeof what, "extent %lld of operand %d", (long long)others[o], i);
                if (trial_fill(&other)) trial_survives(f, &other, what);
            }
}

/* Asks the shape rule. */
static bool infers(const trial *t)
{
    ed_call call;
    ed_call_room room;
    if (!ops_call_begin(&call, &room, t->op, t->x, t->n, t->attrs)) return false;
    memcpy(call.inputs, t->x, (size_t)t->n * sizeof *t->x);
    bool ok = trial_infer(&call);
    for (int k = 0; k < call.n_outputs; k++) ed_release(call.outputs[k]);
    ops_call_end(&call);
    return ok;
}

/* Whether what comes before axis d of operand i has its extent too. */
static bool is_known(const trial *t, int i, int d)
{
    for (int k = 0; k <= i; k++)
        for (int a = 0; a < (k < i ? t->rank[k] : d); a++)
            if (t->shape[k][a] == t->shape[i][d]) return true;
    return false;
}

/*
 * Shapes as large as can be said, of one element that stands for all. Only the shape rule is asked:
 * a kernel would work for ever, and memory that the rule takes is never touched.
 */
static void check_huge(findings *f, int s)
{
    static const int64_t extents[] = {1 << 20, INT32_MAX, (int64_t)1 << 40};
    trial t;
    if (f->op->compose || !trial_begin(f, &t, s, ED_FLOAT64)) return;
    for (int i = 0; i < t.n; i++)
        for (int d = 0; d < t.rank[i]; d++)
            for (int e = 0; e < 6; e++) {
                ED_SCOPE;
                static const int64_t zeros[ED_MAX_RANK];
                trial huge = t;
                if (e % 2 && is_known(&t, i, d)) continue; /* all of this extent have been huge */
                int64_t from = huge.shape[i][d], to = extents[e / 2];
                for (int k = 0; k < huge.n; k++)
                    for (int a = 0; a < huge.rank[k]; a++)
                        if ((k == i && a == d) || (e % 2 && huge.shape[k][a] == from))
                            huge.shape[k][a] = to;
                bool made = true;
                for (int k = 0; made && k < huge.n; k++) {
                    ed_tensor *one = scope_give(tensor_new(huge.dtype[k], 0, NULL));
                    if (one) memset(one->data, 0, dtype_size(one->dtype));
                    huge.x[k] =
                        one ? scope_give(tensor_view(one, huge.rank[k], huge.shape[k], zeros, 0))
                            : NULL;
                    made = huge.x[k] != NULL;
                }
                if (made)
                    EXPECT(f, infers(&huge) || ed_failed(), "extent %lld: refused without an error",
                           (long long)to);
                ed_clear_error();
            }
}

/* Operands on a user's own memory, and variables, are as good as any. */
static void check_other_operands(findings *f, const trial *plain)
{
    ED_SCOPE;
    trial t = *plain;
    const ed_list *y = trial_run(plain), *z;
    if (!y) return;
    for (int i = 0; i < t.n; i++)
        if (!(t.x[i] = ed_variable_with(plain->x[i], NULL))) return;
    bool same = (z = trial_run(&t)) && y->size == z->size;
    for (int k = 0; same && k < y->size; k++) same = same_bits(y->items[k], z->items[k]);
    EXPECT(f, same, "with variables: %s", ed_failed() ? ed_error() : "another result");
    ed_clear_error();
}

void check_misuse(findings *f)
{
    trial t;
    for (int s = 0; trial_begin(f, &t, s, ED_FLOAT64); s++) {
        ED_SCOPE;
        if (!trial_fill(&t)) return;
        if (!s) check_operands(f, &t);
        check_other_operands(f, &t);
        for (int i = t.n == 1 ? 0 : -1; i < t.n; i++) check_ranks(f, s, i);
        check_extents(f, s);
        check_huge(f, s);
    }
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static const int64_t wrong_ints[] = {-100, -1, 0, 1, 2, 100, INT64_MIN, INT64_MAX, 1LL << 40};
static const double wrong_floats[] = {NAN, INFINITY, -INFINITY, -1, 0, 0.5, 1, 2, 1e308, -1e308};
static const char *const wrong_texts[] = {NULL, "", "bogus", "%n%s", "VALID ", "same"};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Lists: too short, too long, repeated, negative, huge; NULL ends them. */
static const ed_ints wrong_lists[] = {
    {NULL, 0},
    {(const int64_t[]){0}, 0},
    {(const int64_t[]){0}, 1},
    {(const int64_t[]){-1}, 1},
    {(const int64_t[]){100}, 1},
    {(const int64_t[]){INT64_MIN}, 1},
    {(const int64_t[]){INT64_MAX}, 1},
    {(const int64_t[]){0, 0}, 2},
    {(const int64_t[]){-1, -1}, 2},
    {(const int64_t[]){1, 0}, 2},
    {(const int64_t[]){0, 1LL << 40}, 2},
    {(const int64_t[]){2, 3}, 2},
    {(const int64_t[]){INT64_MAX, INT64_MAX}, 2},
    {(const int64_t[]){INT64_MIN, INT64_MIN}, 2},
    {(const int64_t[]){2, 1, 0}, 3},
    {(const int64_t[]){-1, -2, -3}, 3},
    {(const int64_t[]){1LL << 40, 0, 1LL << 40}, 3},
    {(const int64_t[]){1, 2, 3, 4, 5, 6, 7, 8}, 8},
    {(const int64_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0}, 9},
    {(const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 20},
};

/* How many values are tried for an attribute, and putting in number i. */
static int wrong_count(const ed_field *a)
{
    switch (a->type) {
    case ED_FIELD_BOOL: return 2;
    case ED_FIELD_INT:
    case ED_FIELD_AXIS: return COUNT(wrong_ints);
    case ED_FIELD_FLOAT: return COUNT(wrong_floats);
    case ED_FIELD_DTYPE: return ED_DTYPE_COUNT + 3;
    case ED_FIELD_INTS:
    case ED_FIELD_AXES: return COUNT(wrong_lists);
    case ED_FIELD_FLOATS: return COUNT(wrong_floats);
    case ED_FIELD_CHOICE:
    case ED_FIELD_STRING: return COUNT(wrong_texts);
    case ED_FIELD_DRAW: return 2;
    default: return 1;
    }
}

static void put_wrong(char *attrs, const ed_field *a, int i)
{
    static const ed_draw most = {NULL, true, {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    static const int odd_dtypes[] = {-1, ED_DTYPE_COUNT, 12345};
    char *to = attrs + a->offset;
    int dtype = i < ED_DTYPE_COUNT ? i : odd_dtypes[i % 3];
    switch (a->type) {
    case ED_FIELD_BOOL: *(bool *)to = i; break;
    case ED_FIELD_INT:
    case ED_FIELD_AXIS: *(int64_t *)to = wrong_ints[i]; break;
    case ED_FIELD_FLOAT: *(double *)to = wrong_floats[i]; break;
    case ED_FIELD_DTYPE: memcpy(to, &dtype, sizeof(ed_dtype)); break;
    case ED_FIELD_INTS:
    case ED_FIELD_AXES: *(ed_ints *)to = wrong_lists[i]; break;
    case ED_FIELD_FLOATS: *(ed_floats *)to = (ed_floats){&wrong_floats[i], 1}; break;
    case ED_FIELD_CHOICE:
    case ED_FIELD_STRING: *(const char **)to = wrong_texts[i]; break;
    case ED_FIELD_DRAW: *(ed_draw *)to = i ? most : (ed_draw){0}; break;
    default: *(void **)to = NULL; break;
    }
}

enum { ATTRS_ROOM = 512 };

/* Every wrong value of each attribute of a sample, and every pair of wrong values of two. */
static void check_sample_attributes(findings *f, const trial *plain)
{
    const ed_op *op = f->op;
    max_align_t room[ATTRS_ROOM / sizeof(max_align_t)];
    trial t = *plain;
    t.attrs = room;
    for (const ed_field *a = op->attrs; a->name; a++)
        for (const ed_field *b = op->attrs; b <= a; b++)
            for (int i = 0; i < wrong_count(a); i++)
                for (int j = 0; j < (a == b ? 1 : wrong_count(b)); j++) {
                    char what[128];
                    memcpy(room, plain->attrs, op->attrs_size);
                    put_wrong((char *)room, b, j);
                    put_wrong((char *)room, a, i);
                    snprintf(what, sizeof what, "attribute %s (value %d), %s (value %d)", a->name,
                             i, b->name, j);
                    trial_survives(f, &t, what);
                }
}

/* An op whose attributes hold objects may be called by its name: without an
 * object it must say so. */
static void check_closed(findings *f)
{
    ED_SCOPE;
    static const float values[] = {1, 2};
    ed_tensor *x = ed_constant(values, ED_SHAPE(2));
    trial t = {.op = f->op, .n = 1, .x = {x}};
    if (x) EXPECT(f, !trial_survives(f, &t, "no object"), "works without its object");
}

/* Attributes of a list of options without their mark: what is not set is not its default. */
static void check_incomplete(findings *f, const trial *plain)
{
    max_align_t room[ATTRS_ROOM / sizeof(max_align_t)];
    const uint32_t *mark = f->op->defaults;
    if (!mark || *mark != ED_OPTIONS_MARK) return;
    trial t = *plain;
    memcpy(room, plain->attrs, f->op->attrs_size);
    memset(room, 0, sizeof *mark);
    t.attrs = room;
    EXPECT(f, !trial_run(&t) && strstr(ed_error(), "incomplete"), "incomplete options pass: %s",
           ed_error());
    ed_clear_error();
}

void check_attributes(findings *f)
{
    trial t;
    if (check_is_closed(f->op)) check_closed(f);
    if (!f->op->attrs || f->op->attrs_size > ATTRS_ROOM) return;
    for (int s = 0; trial_begin(f, &t, s, ED_FLOAT64); s++) {
        ED_SCOPE;
        if (!trial_fill(&t)) return;
        check_sample_attributes(f, &t);
        check_incomplete(f, &t);
        if (t.sample->attrs) continue;
        t.attrs = NULL;
        EXPECT(f, trial_run(&t), "NULL attributes: %s", ed_error());
        ed_clear_error();
    }
}

/* ---- Memory that fails ----------------------------------------------------------------------- */

/* Forward and, where there is one, the gradient. */
static bool there_and_back(const trial *t)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_list *sources = ed_list_make(t->x, t->n), *y;
    bool any = false;
    if (!tape || !sources) return false;
    for (int i = 0; i < t->n; i++)
        if (check_differentiates(t, i)) {
            any = true;
            if (!ed_watch(tape, t->x[i])) return false;
        }
    if (!(y = trial_run(t))) return false;
    if (!any || t->op->no_gradient || !(y = trial_floats(y))) return true;
    return ed_gradient_list(tape, y, sources, NULL) != NULL;
}

/*
 * Allocation number n, or (repeat) each from there on, fails: whether it came to that. A call may
 * still have worked when only the tape lost what it wanted to note, but the error is kept.
 */
static bool fail_at(findings *f, const trial *t, int n, bool repeat)
{
    ed_memory before = ed_memory_stats();
    ed_memory_fail_at(n, repeat);
    bool ok = there_and_back(t), failed = ed_memory_has_failed();
    ed_memory_fail_at(-1, false);
    ed_memory after = ed_memory_stats();
    EXPECT(f, ok ? !failed || ed_failed() : ed_error_kind() == ED_OUT_OF_MEMORY,
           "allocation %d fails and the result is %s: %s", n, ok ? "success" : "another error",
           ed_error());
    EXPECT(f, after.live_tensors == before.live_tensors && after.live_bytes == before.live_bytes,
           "allocation %d fails and %lld tensors, %lld bytes stay", n,
           (long long)(after.live_tensors - before.live_tensors),
           (long long)(after.live_bytes - before.live_bytes));
    ed_clear_error();
    return failed;
}

void check_memory(findings *f)
{
    trial t;
    for (int s = 0; trial_begin(f, &t, s, ED_FLOAT64); s++) {
        ED_SCOPE;
        enum { MOST = 3000 };
        if (!trial_fill(&t) || !there_and_back(&t)) {
            found(f, "does not work even with memory: %s", ed_error());
            ed_clear_error();
            continue;
        }
        for (int repeat = 0; repeat < 2; repeat++) {
            int n = 0;
            while (n < MOST && fail_at(f, &t, n, repeat)) n++;
            EXPECT(f, n > 0 && n < MOST, "%d allocations", n);
        }
    }
}
