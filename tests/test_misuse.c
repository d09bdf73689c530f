/*
 * Every public function, called with whatever its types allow. tools/calls.sh reads the functions
 * and their structures of options from the headers. Of each, calls that succeed are looked for
 * among ordinary values; from these on, one argument after the other, and one option after the
 * other, takes every value that any_values.h has for its type; then all arguments take any. A call
 * succeeds, or it gives nothing and an error that names the function; it never crashes, takes
 * seconds or leaves anything behind. Every kind is made, and used, in the same way.
 */
#include "tests/checks.h"
#include "tests/folders.h"
#include "tests/functions.h"
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

enum { ROOM = 4096, SEARCHES = 300, FOUND = 3, WILD = 60 };

/* Of the processor, for one call; a jacobian of a million rows takes half a minute where memory is
 * written before and after its use, and so do the products of expm, 15 of 1000 x 1000, where each
 * load is checked. */
#if defined(EDDY_HARD)
enum { SECONDS = 300 };
#elif defined(EDDY_SANITIZED)
enum { SECONDS = 90 };
#else
enum { SECONDS = 20 };
#endif

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Functions that are not called, by name or (*) how their names begin: what a program promises them
 * can't be made up. */
static const struct {
    const char *why, *names;
} left_out[] = {
    {"arrays whose length the program gives",
     "ed_dtype_load ed_dtype_store ed_constant_of ed_constant_within ed_copy_to_of ed_counter "
     "ed_strided_slice_of ed_assign_strided_slice_of ed_list_make* ed_sparse_concat_with "
     "ed_checkpoint_of ed_layer_sequential_of"},
    {"structures and functions of the program",
     "ed_layer_new ed_layer_make ed_layer_state ed_make ed_kind_register ed_op_register "
     "ed_trackable_new ed_listen ed_unlisten ed_lbfgs_with"},
    {"called inside a call",
     "ed_attrs_* ed_batch_axes ed_batch_broadcast ed_batch_each ed_batch_first ed_batch_reduction "
     "ed_call_* ed_execute* ed_track* ed_training_* ed_layer_return*"},
    {"references and scopes", "ed_keep ed_release ed_retain ed_scope_*"},
    {"the whole process", "ed_memory_* ed_set_* ed_interrupt ed_clear_*"},
    {"prints", "ed_print_with ed_sparse_print_with"},
    {"says what there is instead", "ed_kind_find"},
};

static bool is_left_out(const char *name)
{
    for (int i = 0; i < COUNT(left_out); i++)
        for (const char *at = left_out[i].names; *at; at += strspn(at, " ")) {
            const size_t n = strcspn(at, " *"), length = at[n] == '*' ? n : strlen(name);
            if (n == length && !strncmp(name, at, n)) return true;
            at += strcspn(at, " ");
        }
    return false;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

/* Work without end is what these ask for. */
static bool asks_for_work(const char *name, int64_t n)
{
    static const char *const names[] = {"epochs", "steps", "max_iter", "max_eval"};
    for (int i = 0; i < COUNT(names); i++)
        if (!strcmp(name, names[i])) return n > 100 || n <= 0;
    return false;
}

/* Bytes of value i of the type, into a member of that many. */
static void put(void *to, size_t size, const char *name, const char *type, int i)
{
    value v = value_of(type, i);
    if (asks_for_work(name, v.integer)) return;
    if (!strcmp(type, "double"))
        memcpy(to, &v.number, size);
    else if (!strcmp(type, "ed_ints"))
        memcpy(to, &v.ints, size);
    else if (!strcmp(type, "ed_floats"))
        memcpy(to, &v.floats, size);
    else if (!strcmp(type, "ed_strings"))
        memcpy(to, &v.strings, size);
    else if (!strcmp(type, "ed_objects"))
        memcpy(to, &v.objects, size);
    else if (strchr(type, '*'))
        memcpy(to, &v.pointer, size);
    else
        memcpy(to, &v.integer, size);
}

/* The options' number i: the defaults, NULL, and those in which one option has another value, the
 * last one incomplete. NULL in `options` asks how many there are. */
static int make_options(const structure *s, int i, void **options)
{
    static max_align_t room[ROOM / sizeof(max_align_t)];
    assert_true(s->size <= sizeof room);
    memset(room, 0, sizeof room);
    if (s->defaults) memcpy(room, s->defaults, s->size);
    if (options) *options = i == 1 ? NULL : room;
    int n = 2;
    for (const ed_field *f = s->fields; f && f->name; f++) {
        const char *type = field_type(f);
        const int count = type ? value_count(type).all : 0;
        if (options && i >= n && i < n + count)
            put((char *)room + f->offset, field_size(f), f->name, type, i - n);
        n += count;
    }
    for (const member *m = s->members; m && m->name; m++) {
        const int count = value_count(m->type).all;
        if (options && i >= n && i < n + count)
            put((char *)room + m->offset, m->size, m->name, m->type, i - n);
        n += count;
    }
    if (options && s->defaults && i == n) memset(room, 0, sizeof(uint32_t));
    return n + (s->defaults ? 1 : 0);
}

static value_counts argument_count(const char *type)
{
    const structure *s = structure_of(type);
    return s ? (value_counts){make_options(s, 0, NULL), 2} : value_count(type);
}

static value argument(const char *type, int i)
{
    value v = {0};
    const structure *s = structure_of(type);
    if (!s) return value_of(type, i);
    make_options(s, i, &v.pointer);
    return v;
}

/* The op of that name, asked for without an error. */
static const ed_op *find_op(const char *name)
{
    for (int i = 0; i < ed_op_count(); i++)
        if (!strcmp(ed_op_at(i)->name, name)) return ed_op_at(i);
    return NULL;
}

/* The op that the function at work calls, if it has one. */
static const ed_op *op;

/* The tensors among an op's arguments are often a sample's operands: argument i is then -1 - s for
 * the sample s. Those that the op lacks, as a bias, are NULL. */
static bool take_operands(const function *f, const int *at, value *a)
{
    findings found = {.op = op};
    trial t;
    int k = 0, s = -1;
    for (int i = 0; f->types[i]; i++)
        if (at[i] < 0) s = -1 - at[i];
    if (s < 0) return true;
    if (!trial_begin(&found, &t, s, ED_FLOAT32) || !trial_fill(&t)) return false;
    for (int i = 0; f->types[i]; i++) {
        if (!is_tensor_type(f->types[i])) continue;
        if (at[i] < 0) a[i].pointer = k < t.n ? t.x[k] : NULL;
        k++;
    }
    return true;
}

/* ---- A call ---------------------------------------------------------------------------------- */

typedef struct tally {
    int64_t calls, succeeded;
    int failures, functions, without; /* without a call that succeeds */
} tally;
static tally all;

/* What is being called, for whoever looks at a crash. */
static char now[256];

static void describe(const function *f, int n, const int *at)
{
    int used = snprintf(now, sizeof now, "%s(", f->name);
    for (int i = 0; i < n && used < (int)sizeof now; i++)
        used += snprintf(now + used, sizeof now - (size_t)used, "%s%d", i ? ", " : "", at[i]);
}

static void complain(const char *what)
{
    if (all.failures++ < 400) printf("%s): %s; the error: %.200s\n", now, what, ed_error());
}

/* An error names the op, or begins with the name of another function or an object; or with what it
 * is about. Where memory ends, and where a function of the program fails, is said by neither. */
static bool names_it(const char *error, const char *name)
{
    static const char *const subjects[] = {"the ", "operand ", "unknown "};
    const char *plain = function_short_name(name);
    if (strstr(error, plain) || ed_error_kind() == ED_OUT_OF_MEMORY) return true;
    if (find_op(plain) && strcmp(plain, "eigh")) return false; /* without vectors it is eigvalsh */
    for (int i = 0; i < COUNT(subjects); i++)
        if (!strncmp(error, subjects[i], strlen(subjects[i]))) return true;
    const size_t word = strcspn(error, ": ");
    return error[word] == ':';
}

static bool call(const function *f, int n, const int *at)
{
    ED_SCOPE;
    outcome got = {.said = UNSAID};
    value a[MOST_ARGUMENTS];
    describe(f, n, at);
    ed_clear_error();
    for (int i = 0; i < n; i++)
        if (at[i] >= 0) a[i] = argument(f->types[i], at[i]);
    if (!take_operands(f, at, a)) return false;
    ed_clear_error();
    const clock_t start = clock();
    f->call(a, &got);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    all.calls++;
    if (seconds > SECONDS) complain("takes long");
    if (got.said == SUCCEEDED && ed_failed()) complain("works, with an error kept");
    if (got.said == FAILED && ed_failed() && !names_it(ed_error(), f->name))
        complain("the error does not name the function");
    const bool ok = got.said != FAILED && !ed_failed();
    all.succeeded += ok;
    ed_clear_error();
    return ok;
}

/* ---- All calls of a function ----------------------------------------------------------------- */

static uint32_t state = 1;
static int any(int below)
{
    state = state * 1664525 + 1013904223;
    return (int)((state >> 8) % (uint32_t)below);
}

/* Calls that succeed, as the numbers of their arguments; how many were found. */
static int search(const function *f, int n, int found[FOUND][MOST_ARGUMENTS])
{
    int at[MOST_ARGUMENTS] = {0}, count = 0, samples = 0;
    while (op && op->samples && !op->samples[samples].last) samples++;
    for (int t = 0; t < SEARCHES && count < FOUND; t++) {
        const int same = any(3) ? -1 : any(100); /* often operands must agree */
        const int sample = samples && any(2) ? -1 - any(samples) : 0;
        for (int i = 0; i < n; i++) {
            const int ordinary = argument_count(f->types[i]).ordinary;
            at[i] = sample && is_tensor_type(f->types[i]) ? sample
                    : same >= 0                           ? same % ordinary
                                                          : any(ordinary);
        }
        if (call(f, n, at)) memcpy(found[count++], at, sizeof at);
    }
    if (!count) memcpy(found[0], at, sizeof at);
    return count;
}

static void call_in_all_ways(const function *f)
{
    int n = 0, found[FOUND][MOST_ARGUMENTS], at[MOST_ARGUMENTS];
    for (; f->types[n]; n++)
        if (!argument_count(f->types[n]).all) {
            printf("%s: there are no values of type %s\n", f->name, f->types[n]);
            all.failures++;
            return;
        }
    op = find_op(function_short_name(f->name));
    const ed_memory before = ed_memory_stats();
    const int count = search(f, n, found);
    all.functions++;
    all.without += !count;
    for (int k = 0; k < (count ? count : 1); k++)
        for (int i = 0; i < n; i++) {
            memcpy(at, found[k], sizeof at);
            const int values = argument_count(f->types[i]).all;
            for (at[i] = 0; at[i] < values; at[i]++) call(f, n, at);
        }
    for (int w = 0; n && w < WILD; w++) {
        for (int i = 0; i < n; i++) at[i] = any(argument_count(f->types[i]).all);
        call(f, n, at);
    }
    const ed_memory after = ed_memory_stats();
    if (after.live_tensors != before.live_tensors) complain("tensors stay");
}

/* ---- Kinds ----------------------------------------------------------------------------------- */

/* What an object of the family is for. */
static void use(const ed_kind *kind, void *object)
{
    const char *family = kind->family;
    ed_tensor *x = value_of("ed_tensor *", any(value_count("ed_tensor *").all)).pointer,
              *y = value_of("ed_tensor *", any(value_count("ed_tensor *").ordinary)).pointer;
    ed_clear_error();
    if (!strcmp(family, "layer")) ed_forward(object, x, .training = any(2));
    if (!strcmp(family, "loss")) ed_loss_compute(object, x, y);
    if (!strcmp(family, "metric")) {
        if (any(2))
            ed_metric_update(object, x);
        else
            ed_metric_compare(object, x, y);
        ed_clear_error();
        ed_metric_result(object);
    }
    if (!strcmp(family, "initializer"))
        ed_initialize(object, value_of("ed_ints", any(12)).ints, ED_FLOAT32);
    if (!strcmp(family, "regularizer")) ed_regularize(object, x);
    if (!strcmp(family, "constraint")) ed_constrain(object, x);
    if (!strcmp(family, "schedule"))
        ed_schedule_at(object, value_of("int64_t", any(value_count("int64_t").all)).integer);
    if (!strcmp(family, "optimizer")) {
        ed_tensor *w = ed_variable(ed_ones(ED_SHAPE(2)));
        ed_clear_error();
        for (int i = 0; i < 3; i++) ed_apply_gradients(object, ed_list_of(w), ed_list_of(w));
    }
}

/* An object with the required options of `base` and then (field not NULL) value i of one. */
static bool make_kind(const ed_kind *kind, const int *base, const ed_field *field, int i)
{
    ED_SCOPE;
    static max_align_t room[ROOM / sizeof(max_align_t)];
    assert_true(kind->options_size <= sizeof room);
    if (kind->defaults) memcpy(room, kind->defaults, kind->options_size);
    for (int r = 0; r < kind->required; r++) {
        const ed_field *f = &kind->fields[r];
        const char *type = field_type(f);
        if (type) put((char *)room + f->offset, field_size(f), f->name, type, base[r]);
    }
    if (field)
        put((char *)room + field->offset, field_size(field), field->name, field_type(field), i);
    snprintf(now, sizeof now, "%s %s(%s, %d", kind->family, kind->name, field ? field->name : "",
             i);
    ed_clear_error();
    all.calls++;
    void *object = ed_make(kind, room);
    if (!object != ed_failed()) complain("nothing without an error, or something with one");
    if (!object && !names_it(ed_error(), kind->name)) complain("the error does not name the kind");
    const bool ok = object != NULL;
    all.succeeded += ok;
    if (object) use(kind, object);
    ed_clear_error();
    return ok;
}

static void make_in_all_ways(const ed_kind *kind)
{
    int base[MOST_ARGUMENTS] = {0};
    bool found = false;
    const ed_memory before = ed_memory_stats();
    for (int t = 0; t < SEARCHES && !found; t++) {
        for (int r = 0; r < kind->required; r++) {
            const char *type = field_type(&kind->fields[r]);
            base[r] = type ? any(value_count(type).ordinary) : 0;
        }
        found = make_kind(kind, base, NULL, 0);
    }
    all.functions++;
    all.without += !found;
    for (const ed_field *f = kind->fields; f && f->name; f++) {
        const char *type = field_type(f);
        for (int i = 0; type && i < value_count(type).all; i++) make_kind(kind, base, f, i);
    }
    const ed_memory after = ed_memory_stats();
    if (after.live_tensors != before.live_tensors) complain("tensors stay");
}

static void report_and_end(int signal_number)
{
    static const char words[] = ": signal\n";
    (void)!write(STDERR_FILENO, now, strlen(now));
    (void)!write(STDERR_FILENO, words, sizeof words - 1);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void any_values_are_survived(void **unused)
{
    (void)unused;
    const struct itimerval limit = {{SECONDS * 30, 0}, {SECONDS * 30, 0}};
    signal(SIGPROF, report_and_end);
#ifndef EDDY_SANITIZED
    signal(SIGSEGV, report_and_end);
    signal(SIGABRT, report_and_end);
    signal(SIGFPE, report_and_end);
    signal(SIGBUS, report_and_end);
    setrlimit(RLIMIT_AS, &(struct rlimit){4ll << 30, RLIM_INFINITY});
#endif
    setvbuf(stdout, NULL, _IOLBF, 0);
    assert_int_equal(chdir(fresh_folder("misuse")), 0);
    assert_true(values_begin());
    for (int i = 0; function_at(i); i++) {
        const function *f = function_at(i);
        if (is_left_out(f->name)) continue;
        setitimer(ITIMER_PROF, &limit, NULL);
        call_in_all_ways(f);
    }
    for (int i = 0; i < ed_kind_count(); i++) {
        const ed_kind *kind = ed_kind_at(i);
        setitimer(ITIMER_PROF, &limit, NULL);
        make_in_all_ways(kind);
    }
    printf("test_misuse: %lld calls of %d functions and kinds, %lld of them succeeded; %d "
           "functions without one\n",
           (long long)all.calls, all.functions, (long long)all.succeeded, all.without);
    assert_int_equal(all.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_values_are_survived),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
