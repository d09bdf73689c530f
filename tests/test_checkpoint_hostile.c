/*
 * Saving and restoring under attack: objects that hang together in strange ways, track functions
 * that misbehave, files whose object graphs lie, optimizers that don't fit, everything released in
 * every order. And that the time for n values is n's.
 */
#include "train/train.h"
#include "io/bundle.h"
#include "tensor/graph.h"
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#ifdef EDDY_SANITIZED
enum { MANY = 10000 };
#else
enum { MANY = 100000 };
#endif

static char folder[64];

static const char *path_of(const char *name)
{
    static char paths[8][160];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void fine_at(int line)
{
    if (ed_failed()) fail_msg("line %d: %s", line, ed_error());
}
#define fine() fine_at(__LINE__)

/* An error of that kind whose sentence has the text in it. */
static void failed_at(int line, ed_error_code kind, const char *words)
{
    if (!ed_failed() || ed_error_kind() != kind || !strstr(ed_error(), words))
        fail_msg("line %d: said '%s' (%d), expected '%s' (%d)", line, ed_error(), ed_error_kind(),
                 words, kind);
    ed_clear_error();
}
#define failed_with(kind, words) failed_at(__LINE__, kind, words)

static ed_tensor *floats(int64_t n, double value)
{
    ED_SCOPE;
    return ed_keep(ed_variable(ed_full(ED_SHAPE(n), value), .name = "v"));
}

static double first(const ed_tensor *v)
{
    return *(const float *)ed_data(v);
}

/* Seconds of this process' work. */
static double work(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Structures of any kind ------------------------------------------------------------------ */

/* Names and what they lead to: an object, or (object NULL) a number. */
typedef struct bag {
    int count;
    const char **names;
    void **objects;
    int64_t *numbers;
} bag;

static void track_bag(void *self, ed_tracker *t)
{
    bag *b = self;
    for (int i = 0; i < b->count; i++)
        if (b->objects[i])
            ed_track(t, b->names[i], b->objects[i]);
        else
            ed_track_int64(t, b->names[i], &b->numbers[i]);
}

static const ed_trackable_class bag_class = {"bag", track_bag};

static bag bag_new(int count)
{
    return (bag){0, calloc((size_t)count, sizeof(char *)), calloc((size_t)count, sizeof(void *)),
                 calloc((size_t)count, sizeof(int64_t))};
}

static void bag_free(bag *b)
{
    free(b->names);
    free(b->objects);
    free(b->numbers);
}

static void put(bag *b, const char *name, void *object)
{
    b->names[b->count] = name;
    b->objects[b->count++] = object;
}

static void circles(void **state)
{
    (void)state;
    ED_SCOPE;
    bag a = bag_new(4), b = bag_new(4);
    ed_trackable *as = ed_trackable_new(&bag_class, &a), *bs = ed_trackable_new(&bag_class, &b);
    ed_tensor *v = floats(2, 7);
    put(&a, "b", bs);
    put(&a, "self", as);
    put(&a, "n", NULL);
    put(&b, "a", as);
    put(&b, "v", v);
    put(&b, "again", v);
    put(&b, "n", NULL);
    a.numbers[2] = 5;
    b.numbers[3] = 6;
    ed_checkpoint *c = ed_checkpoint("one", as, "two", bs, "three", as, "v", v);
    const char *path = path_of("circles");
    assert_non_null(ed_checkpoint_write(c, path));
    a.numbers[2] = b.numbers[3] = 0;
    ed_assign(v, ed_zeros(ED_SHAPE(2)));
    ed_restoration *r = ed_checkpoint_read(c, path);
    fine();
    assert_true(a.numbers[2] == 5 && b.numbers[3] == 6 && first(v) == 7);
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 3); /* shared ones are saved once */
    assert_true(ed_assert_consumed(r) && ed_assert_nontrivial_match(r));
    bag_free(&a);
    bag_free(&b);
}

static void names_of_all_kinds(void **state)
{
    (void)state;
    ED_SCOPE;
    size_t length = 1 << 20;
    char *long_name = malloc(length + 1), *long_sibling = malloc(length + 1);
    memset(long_name, 'x', length);
    memset(long_sibling, 'x', length);
    long_name[length] = long_sibling[length] = 0;
    long_sibling[length - 1] = '/';
    const char *names[] = {"a/b",
                           "a.Sb",
                           "a..Sb",
                           "a",
                           ".",
                           "..",
                           "...",
                           "/",
                           "//",
                           "./",
                           "/.",
                           ".S",
                           "S",
                           "",
                           " ",
                           "\n\t\"\\",
                           "%s%n%d",
                           "größe 数 \xf0\x9f\x8c\x8a",
                           "\xff\xfe\x80",
                           "root",
                           "save_counter",
                           ".ATTRIBUTES",
                           "VARIABLE_VALUE",
                           ".ATTRIBUTES/VARIABLE_VALUE",
                           ".OPTIMIZER_SLOT",
                           "_CHECKPOINTABLE_OBJECT_GRAPH",
                           long_name,
                           long_sibling};
    enum { N = sizeof names / sizeof *names };
    bag a = bag_new(N + 1), b = bag_new(N + 1);
    for (int i = 0; i < N; i++) {
        put(&a, names[i], NULL);
        put(&b, names[i], NULL);
        a.numbers[i] = 100 + i;
    }
    put(&a, "deeper", ed_trackable_new(&bag_class, &a));
    put(&b, "deeper", ed_trackable_new(&bag_class, &b));
    const char *path = path_of("names");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("root", a.objects[N]), path));
    ed_restoration *r = ed_checkpoint_read(ed_checkpoint("root", b.objects[N]), path);
    fine();
    for (int i = 0; i < N; i++)
        if (b.numbers[i] != 100 + i) fail_msg("'%.40s' is %lld", names[i], (long long)b.numbers[i]);
    assert_true(ed_assert_consumed(r));

    /* the same paths in patterns and renames: escaped */
    memset(b.numbers, 0, N * sizeof *b.numbers);
    ed_checkpoint_read(ed_checkpoint("root", b.objects[N]), path,
                       .only = ED_TEXTS("root/a.Sb", "root/", "root/..S"));
    fine();
    for (int i = 0; i < N; i++) {
        bool wanted = !strcmp(names[i], "a/b") || !*names[i] || !strcmp(names[i], ".S");
        assert_int_equal(b.numbers[i], wanted ? 100 + i : 0);
    }
    bag one = bag_new(1);
    put(&one, "other", NULL);
    ed_checkpoint *other = ed_checkpoint("mine", ed_trackable_new(&bag_class, &one));
    ed_checkpoint_read(other, path, .partial = true,
                       .renames = ED_TEXTS("mine/other", "root/a...SSb"));
    failed_with(ED_NOT_FOUND, "no root/a...SSb in the file");
    ed_checkpoint_read(other, path, .partial = true,
                       .renames = ED_TEXTS("mine/other", "root/a..Sb"));
    fine();
    assert_int_equal(one.numbers[0], 101);
    bag_free(&one);
    bag_free(&a);
    bag_free(&b);
    free(long_name);
    free(long_sibling);
}

/* ---- Track functions that misbehave ---------------------------------------------------------- */

struct odd {
    int what;
    int64_t numbers[2];
    ed_tensor *variable;
    int asked;
};

static void get_zero(const void *self, void *elements)
{
    (void)self;
    memset(elements, 0, 8);
}

static void set_nothing(void *self, const void *elements)
{
    (void)self, (void)elements;
}

static void track_number(void *self, ed_tracker *t)
{
    ED_SCOPE;
    ed_track(t, "number", ed_counter(self));
}

static const ed_trackable_class number_class = {"number", track_number};

static void track_odd(void *self, ed_tracker *t)
{
    struct odd *o = self;
    static const ed_state no_get = {ED_INT64, -1, NULL, NULL, set_nothing};
    static const ed_state no_dtype = {ED_DTYPE_NONE, -1, get_zero, NULL, set_nothing};
    static const ed_state bad_dtype = {(ed_dtype)99, -1, get_zero, NULL, set_nothing};
    static const ed_state bad_count = {ED_INT64, -2, get_zero, NULL, set_nothing};
    static const ed_state vast = {ED_INT64, INT64_MAX / 2, get_zero, NULL, set_nothing};
    o->asked++;
    switch (o->what) {
    case 0: ed_track(t, NULL, o->variable); break;
    case 1: ed_track(t, "v", NULL); break;
    case 2:
        ed_track(t, "v", o->variable);
        ed_track(t, "v", o->variable);
        break;
    case 3: ed_track_int64(t, "n", NULL); break;
    case 4: ed_track_float64(t, "n", NULL); break;
    case 5: ed_track_state(t, "n", o, NULL); break;
    case 6: ed_track_state(t, "n", o, &no_get); break;
    case 7: ed_track_state(t, "n", o, &no_dtype); break;
    case 8: ed_track_state(t, "n", o, &bad_dtype); break;
    case 9: ed_track_state(t, "n", o, &bad_count); break;
    case 10: ed_fail(ED_UNIMPLEMENTED, "odd: no"); break; /* kept, and nothing else */
    case 11: ed_track(t, "x", ed_zeros(ED_SHAPE(2))); break;
    case 12: ed_track(t, "x", ed_add(o->variable, ed_ones(ED_SHAPE(77)))); break;
    case 13:
        ed_track(NULL, "x", o->variable);
        ed_track_int64(NULL, "x", o->numbers);
        break;
    case 14: ed_track_state(t, "n", o, &vast); break; /* found when it is saved */
    case 20:                                          /* all made on the spot, nobody holds it */
        ed_track(t, "a", ed_trackable_new(&number_class, &o->numbers[0]));
        ed_track(t, "b", ed_trackable_new(&number_class, &o->numbers[1]));
        break;
    case 21: /* one number by two names */
        ed_track_int64(t, "a", &o->numbers[0]);
        ed_track_int64(t, "b", &o->numbers[0]);
        break;
    case 22: ed_track_int64(t, o->asked > 3 ? "later" : "early", &o->numbers[0]); break;
    default: break; /* names nothing */
    }
}

static const ed_trackable_class odd_class = {"odd", track_odd};

static void misbehaving(void **state)
{
    (void)state;
    ED_SCOPE;
    struct odd o = {.what = 99, .variable = floats(2, 1)};
    ed_trackable *trackable = ed_trackable_new(&odd_class, &o);
    ed_checkpoint *sound = ed_checkpoint("odd", trackable, "v", o.variable);
    fine();
    for (o.what = 0; o.what < 14; o.what++) {
        ed_memory before = ed_memory_stats();
        {
            ED_SCOPE;
            assert_null(ed_checkpoint("odd", trackable));
            assert_true(ed_failed());
            ed_clear_error();
            assert_null(ed_checkpoint_write(sound, path_of("odd")));
            assert_true(ed_failed());
            ed_clear_error();
        }
        assert_int_equal(ed_memory_stats().live_bytes, before.live_bytes);
    }
    o.what = 14;
    assert_null(ed_checkpoint_write(sound, path_of("odd")));
    assert_true(ed_failed());
    ed_clear_error();
    assert_int_not_equal(access(path_of("odd.index"), F_OK), 0);

    /* an error of before is no failure of the function */
    o.what = 99;
    ed_fail(ED_UNIMPLEMENTED, "before");
    assert_non_null(ed_checkpoint_write(sound, path_of("odd")));
    failed_with(ED_UNIMPLEMENTED, "before");
}

static void on_the_spot(void **state)
{
    (void)state;
    ED_SCOPE;
    struct odd a = {.what = 20, .numbers = {3, 4}}, b = {.what = 20};
    ed_checkpoint *ca = ed_checkpoint("x", ed_trackable_new(&odd_class, &a)),
                  *cb = ed_checkpoint("x", ed_trackable_new(&odd_class, &b));
    ed_memory before = ed_memory_stats();
    for (int i = 0; i < 20; i++) assert_non_null(ed_checkpoint_write(ca, path_of("spot")));
    /* what the function made is gone each time: only the texts of paths stay in this scope */
    assert_true(ed_memory_stats().live_bytes - before.live_bytes < 20 * 512);
    ed_checkpoint_read(cb, path_of("spot"));
    fine();
    assert_true(b.numbers[0] == 3 && b.numbers[1] == 4);

    a.what = b.what = 21;
    assert_non_null(ed_checkpoint_write(ca, path_of("spot")));
    a.numbers[0] = 9;
    ed_restoration *r = ed_checkpoint_read(ca, path_of("spot"));
    fine();
    assert_true(a.numbers[0] == 3 && ed_assert_consumed(r));

    a = (struct odd){.what = 22, .numbers = {8}, .asked = 0};
    assert_non_null(ed_checkpoint_write(ca, path_of("spot")));
    a.asked = 9;
    assert_null(ed_checkpoint_read(ca, path_of("spot")));
    failed_with(ED_INVALID_ARGUMENT, "missing in the file: x/later; unexpected in the file: "
                                     "x/early");
}

static void bad_arguments(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = floats(2, 1);
    const void *pairs[] = {"a", v, "b", v};
    assert_null(ed_checkpoint_of(pairs, -2));
    failed_with(ED_INVALID_ARGUMENT, "in turn");
    assert_null(ed_checkpoint_of(pairs, 3));
    failed_with(ED_INVALID_ARGUMENT, "in turn");
    assert_null(ed_checkpoint_of(NULL, 2));
    failed_with(ED_INVALID_ARGUMENT, "in turn");
    assert_null(ed_checkpoint_of(pairs, INT64_MAX - 1));
    failed_with(ED_OUT_OF_RANGE, "objects");
    assert_null(ed_checkpoint("a", v, NULL, v));
    failed_with(ED_INVALID_ARGUMENT, "name 1 is NULL");
    assert_null(ed_checkpoint("a", NULL));
    failed_with(ED_INVALID_ARGUMENT, "'a' is NULL");
    ed_checkpoint *c = ed_checkpoint_of(NULL, 0); /* of nothing: its counter */
    assert_non_null(ed_checkpoint_save(c, path_of("nothing")));
    assert_non_null(ed_checkpoint_restore(c, path_of("nothing-1")));
    assert_null(ed_checkpoint("other", c));
    failed_with(ED_INVALID_ARGUMENT, "a checkpoint has nothing that could be restored");

    c = ed_checkpoint("v", v);
    assert_non_null(ed_checkpoint_write(c, path_of("args")));
    ed_checkpoint_read(c, path_of("args"), .skip = {NULL, 3}, .only = {NULL, 3});
    fine();
    assert_null(ed_checkpoint_read(c, path_of("args"), .renames = {NULL, 2}));
    failed_with(ED_INVALID_ARGUMENT, "NULL");
    assert_null(ed_checkpoint_read(c, path_of("args"), .renames = ED_TEXTS("v", NULL)));
    failed_with(ED_INVALID_ARGUMENT, "NULL");
    ed_tensor *w = floats(2, 5);
    assert_null(ed_checkpoint_read(ed_checkpoint("a", w, "b", v), path_of("args"), .partial = true,
                                   .renames = ED_TEXTS("a", "v", "b", "v")));
    failed_with(ED_INVALID_ARGUMENT, "given twice");
    ed_restoration *r = ed_checkpoint_read(c, path_of("args"), .only = ED_TEXTS());
    fine();
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 0);
    for (int64_t i = -1; i < 2; i++) assert_null(ed_restoration_path(r, (ed_restored)7, i));
    failed_with(ED_INVALID_ARGUMENT, "no such kind");
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* n variables in a list and again in an optimizer: save, restore while slots wait, take them,
 * restore again, ask. */
static double time_of(int n)
{
    ED_SCOPE;
    bag a = bag_new(n), b = bag_new(n);
    char(*names)[16] = malloc((size_t)n * sizeof *names);
    for (int i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "v%d", n - i);
        put(&a, names[i], ed_variable(ed_full(ED_SHAPE(), i)));
        put(&b, names[i], ed_variable(ed_full(ED_SHAPE(), 0)));
    }
    ed_list *as = ed_list_make((ed_tensor **)a.objects, n),
            *bs = ed_list_make((ed_tensor **)b.objects, n);
    ed_optimizer *adam = ed_adam(), *fresh = ed_adam();
    ed_apply_gradients(adam, as, as);
    fine();
    double start = work(), paused;
    ed_checkpoint *c = ed_checkpoint("bag", ed_trackable_new(&bag_class, &a), "adam", adam),
                  *d = ed_checkpoint("bag", ed_trackable_new(&bag_class, &b), "adam", fresh);
    const char *path = path_of("many");
    assert_non_null(ed_checkpoint_write(c, path));
    ed_restoration *r = ed_checkpoint_read(d, path);
    fine();
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 2 * n);
    assert_non_null(ed_restoration_report(r));
    assert_non_null(ed_checkpoint_write(d, path_of("many-again")));
    paused = work();
    ed_apply_gradients(fresh, as, bs);
    start += work() - paused;
    assert_true(ed_assert_consumed(r));
    ed_checkpoint_read(d, path);
    fine();
    const void **pairs = malloc((size_t)n * 2 * sizeof *pairs);
    for (int i = 0; i < n; i++) {
        pairs[2 * i] = names[i];
        pairs[2 * i + 1] = b.objects[i];
    }
    ed_checkpoint *top = ed_checkpoint_of(pairs, 2 * n);
    assert_non_null(ed_checkpoint_write(top, path));
    assert_non_null(ed_checkpoint_read(top, path));
    assert_non_null(ed_checkpoint_read(ed_checkpoint("x", a.objects[0]), path, .partial = true));
    fine();
    free(pairs);
    free(names);
    bag_free(&a);
    bag_free(&b);
    return work() - start;
}

static void time_is_linear(void **state)
{
    (void)state;
    time_of(1000);
    double few = time_of(MANY / 16), many = time_of(MANY / 2);
    print_message("%d: %.3f s, %d: %.3f s\n", MANY / 16, few, MANY / 2, many);
    if (many > 24 * few) fail_msg("eight times as many take %.1f times as long", many / few);
}

/* A chain of objects, each in the one before. */
static bag *chain_new(int n, bool numbers)
{
    bag *bags = malloc((size_t)n * sizeof *bags);
    for (int i = 0; i < n; i++) bags[i] = bag_new(2);
    for (int i = 0; i < n; i++) {
        if (i + 1 < n) put(&bags[i], "next", ed_trackable_new(&bag_class, &bags[i + 1]));
        if (numbers || i + 1 == n) put(&bags[i], "n", NULL);
    }
    return bags;
}

static void chain_free(bag *bags, int n)
{
    for (int i = 0; i < n; i++) bag_free(&bags[i]);
    free(bags);
}

static void deep(void **state)
{
    (void)state;
    ED_SCOPE;
    bag *chain = chain_new(MANY, false);
    ed_checkpoint *c = ed_checkpoint("chain", ed_trackable_new(&bag_class, chain));
    fine();
    bag *last = &chain[MANY - 1];
    last->numbers[0] = 77;
    assert_non_null(ed_checkpoint_write(c, path_of("deep")));
    last->numbers[0] = 0;
    ed_restoration *r = ed_checkpoint_read(c, path_of("deep"));
    fine();
    assert_int_equal(last->numbers[0], 77);
    assert_int_equal(strlen(ed_restoration_path(r, ED_RESTORED, 0)),
                     strlen("chain/n") + (MANY - 1) * strlen("next/"));
    chain_free(chain, MANY);

    /* a number at each: the names of all would take gigabytes */
    chain = chain_new(MANY, true);
    c = ed_checkpoint("chain", ed_trackable_new(&bag_class, chain));
    assert_null(ed_checkpoint_write(c, path_of("deeper")));
    if (MANY < 50000)
        ed_clear_error();
    else
        failed_with(ED_OUT_OF_RANGE, "too deep");
    chain_free(chain, MANY);
}

/* Each names the one before: what lies below whom is found out backward. */
static void backward_chain(void **state)
{
    (void)state;
    ED_SCOPE;
    bag *bags = malloc(MANY * sizeof *bags), all = bag_new(MANY);
    char(*names)[16] = malloc(MANY * sizeof *names);
    for (int i = 0; i < MANY; i++) {
        bags[i] = bag_new(1);
        put(&bags[i], i ? "before" : "n", i ? all.objects[i - 1] : NULL);
        snprintf(names[i], sizeof names[i], "%d", i);
        put(&all, names[i], ed_trackable_new(&bag_class, &bags[i]));
    }
    bags[0].numbers[0] = 5;
    ed_checkpoint *c = ed_checkpoint("all", ed_trackable_new(&bag_class, &all));
    double start = work();
    assert_non_null(ed_checkpoint_write(c, path_of("backward")));
    bags[0].numbers[0] = 0;
    assert_non_null(ed_checkpoint_read(c, path_of("backward")));
    assert_int_equal(bags[0].numbers[0], 5);
    assert_true(work() - start < 20);
    chain_free(bags, MANY);
    bag_free(&all);
    free(names);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void every_dtype(void **state)
{
    (void)state;
    static const int64_t shapes[][8] = {
        {0},       {7},          {0, 3},          {2, 1, 3},
        {1, 1, 1}, {2, 3, 2, 2}, {2, 1, 2, 1, 2}, {1, 2, 1, 2, 1, 2, 1, 2}};
    static const int ranks[] = {0, 1, 2, 3, 3, 4, 5, 8};
    enum { SHAPES = sizeof ranks / sizeof *ranks };
    ED_SCOPE;
    uint8_t bytes[256 * 8];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 + i / 256);
    const uint32_t nans[] = {0x7fc00001, 0xffc12345, 0x7f800001,
                             0xff800001, 0x80000000, 0x7fffffff};
    memcpy(bytes, nans, sizeof nans);
    const uint64_t wide[] = {0x7ff0000000000001, 0xfff8dead0000beef, 0x8000000000000000};
    bag a = bag_new(ED_DTYPE_COUNT * SHAPES), b = bag_new(ED_DTYPE_COUNT * SHAPES);
    static char names[ED_DTYPE_COUNT * SHAPES][16];
    for (int d = 1; d < ED_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++) {
            if (d == ED_FLOAT64) memcpy(bytes, wide, sizeof wide);
            if (d == ED_BOOL)
                for (size_t i = 0; i < sizeof bytes; i++) bytes[i] &= 1;
            ed_ints shape = {shapes[s], ranks[s]};
            ed_tensor *t = ed_constant_of((ed_dtype)d, bytes, shape);
            snprintf(names[a.count], sizeof *names, "%d_%d", d, s);
            put(&b, names[a.count], ed_variable(ed_zeros_like(t)));
            put(&a, names[a.count], ed_variable(t));
            fine();
        }
    assert_non_null(ed_checkpoint_write(ed_checkpoint("a", ed_trackable_new(&bag_class, &a)),
                                        path_of("dtypes")));
    ed_checkpoint_read(ed_checkpoint("a", ed_trackable_new(&bag_class, &b)), path_of("dtypes"));
    fine();
    for (int i = 0; i < a.count; i++)
        assert_memory_equal(ed_data(a.objects[i]), ed_data(b.objects[i]),
                            (size_t)ed_size(a.objects[i]) *
                                (size_t)ed_dtype_size(ed_dtype_of(a.objects[i])));
    bag_free(&a);
    bag_free(&b);
}

/* What was read from a variable before a restore stays: views, tapes, a save in the background. */
static void old_values_stay(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v =
        ed_variable(ed_transpose(ed_constant(ED_VALUES(float, 1, 2, 3, 4, 5, 6), ED_SHAPE(2, 3))));
    ed_checkpoint *c = ed_checkpoint("v", v);
    assert_non_null(ed_checkpoint_write(c, path_of("old")));
    ed_assign(v, ed_full(ED_SHAPE(3, 2), 10));
    ed_tensor *value = ed_value(v), *row = ed_slice(v, .begin = ED_SHAPE(1, 0));
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_sum(ed_square(v));
    ed_checkpoint_manager *m = ed_checkpoint_manager(c, path_of("background"));
    assert_non_null(ed_save(m, .in_background = true));
    ed_checkpoint_read(c, path_of("old"));
    fine();
    assert_true(first(v) == 1 && ((const float *)ed_data(v))[1] == 4);
    assert_true(first(value) == 10 && first(row) == 10);
    assert_true(first(ed_gradient(tape, loss, v)) == 20);
    assert_true(ed_save_wait(m));
    ed_restoration *r = ed_checkpoint_restore(c, ed_manager_latest(m));
    fine();
    assert_true(ed_assert_consumed(r) && first(v) == 10);
}

static void memory(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 40, SIZE = (1 << 16) - 32 }; /* which with their header fill a block */
    bag a = bag_new(N);
    static char names[N][8];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        put(&a, names[i], floats(SIZE, i));
    }
    ed_checkpoint *c = ed_checkpoint("a", ed_trackable_new(&bag_class, &a));
    int64_t whole = (int64_t)N * SIZE * 4;
    ed_memory_reset_peak();
    ed_memory before = ed_memory_stats();
    assert_non_null(ed_checkpoint_write(c, path_of("memory")));
    assert_true(ed_memory_stats().peak_bytes - before.live_bytes < whole / 4);
    ed_memory_reset_peak();
    before = ed_memory_stats();
    {
        ED_SCOPE;
        ed_checkpoint_read(c, path_of("memory"));
        fine();
        assert_true(ed_memory_stats().peak_bytes - before.live_bytes < whole + (1 << 20));
        assert_true(ed_memory_stats().live_bytes - before.live_bytes < 64 << 10);
    }
    assert_true(llabs(ed_memory_stats().live_bytes - before.live_bytes) < 1024);
    bag_free(&a);
}

/* ---- Optimizers ------------------------------------------------------------------------------ */

enum { ADAM, AMSGRAD, MOMENTUM, SGD, RMSPROP, KINDS };

static ed_optimizer *optimizer_of(int kind)
{
    switch (kind) {
    case ADAM: return ed_adam(.learning_rate = 0.5);
    case AMSGRAD: return ed_adam(.learning_rate = 0.5, .amsgrad = true);
    case MOMENTUM: return ed_sgd(.learning_rate = 0.5, .momentum = 0.9);
    case SGD: return ed_sgd(.learning_rate = 0.5);
    default: return ed_rmsprop(.learning_rate = 0.5, .momentum = 0.5, .centered = true);
    }
}

/* A step by gradients that differ for each variable. */
static void step(ed_optimizer *o, ed_list *variables)
{
    ED_SCOPE;
    ed_tensor *gradients[8];
    for (int64_t i = 0; i < ed_list_size(variables); i++)
        gradients[i] = ed_mul(ed_add(ed_list_get(variables, i), 1), 0.25);
    ed_apply_gradients(o, ed_list_make(gradients, ed_list_size(variables)), variables);
}

/* Slots by slots. */
static bool same_slots(const ed_optimizer *a, const ed_optimizer *b)
{
    ED_SCOPE;
    ed_list *x = ed_optimizer_variables(a), *y = ed_optimizer_variables(b);
    if (ed_list_size(x) != ed_list_size(y)) return false;
    for (int64_t i = 0; i < ed_list_size(x); i++)
        if (first(ed_list_get(x, i)) != first(ed_list_get(y, i))) return false;
    return true;
}

static ed_checkpoint *with_optimizer(ed_list *variables, ed_optimizer *o)
{
    return ed_checkpoint("v", variables, "o", o);
}

/* Each kind's file into each kind, before and after its first step. */
static void kinds_of_optimizers(void **state)
{
    (void)state;
    for (int from = 0; from < KINDS; from++)
        for (int to = 0; to < KINDS; to++)
            for (int stepped = 0; stepped < 2; stepped++) {
                ED_SCOPE;
                ed_optimizer *a = optimizer_of(from), *b = optimizer_of(to);
                ed_list *x = ed_list_of(floats(3, 1), floats(3, 2)),
                        *y = ed_list_of(floats(3, 8), floats(3, 9));
                step(a, x);
                if (stepped) step(b, y);
                assert_non_null(ed_checkpoint_write(with_optimizer(x, a), path_of("kinds")));
                ed_restoration *r = ed_checkpoint_read(with_optimizer(y, b), path_of("kinds"));
                if (from != to) {
                    assert_null(r);
                    failed_with(ED_INVALID_ARGUMENT, "does not fit");
                    assert_true(ed_iterations(b) == stepped && first(ed_list_get(y, 0)) > 5);
                    continue;
                }
                fine();
                assert_true(!stepped || ed_assert_consumed(r));
                step(a, x);
                step(b, y);
                fine();
                assert_true(ed_assert_consumed(r) && same_slots(a, b));
                assert_true(first(ed_list_get(x, 1)) == first(ed_list_get(y, 1)));
            }
}

static void steps_too_early(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_optimizer *o = ed_adam();
    ed_list *x = ed_list_of(floats(3, 1), floats(3, 2));
    ed_checkpoint *c = with_optimizer(x, o);
    assert_non_null(ed_checkpoint_write(c, path_of("early")));
    step(o, x);
    assert_null(ed_checkpoint_read(c, path_of("early")));
    failed_with(ED_INVALID_ARGUMENT, "an optimizer that has made steps keeps values here that the "
                                     "file does not have: restore into a new one");
    assert_int_equal(ed_iterations(o), 1);
    ed_checkpoint_read(c, path_of("early"), .partial = true);
    fine();
    assert_true(ed_iterations(o) == 0 && first(ed_list_get(x, 0)) == 1);
}

/* Slots belong to variables, not to places: another order, some frozen, one that came later. */
static void order_of_variables(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        ED_SCOPE;
        ed_optimizer *a = optimizer_of(kind), *b = optimizer_of(kind), *c = optimizer_of(kind);
        ed_tensor *u = floats(3, 1), *v = floats(3, 2), *w = floats(3, 3);
        ed_tensor *u2 = floats(3, 0), *v2 = floats(3, 0), *w2 = floats(3, 0);
        step(a, ed_list_of(u, v, w));
        step(a, ed_list_of(u, v, w));
        ed_checkpoint *mine = with_optimizer(ed_list_of(u, v, w), a),
                      *other = with_optimizer(ed_list_of(u2, v2, w2), b);
        assert_non_null(ed_checkpoint_write(mine, path_of("order")));
        ed_restoration *r = ed_checkpoint_read(other, path_of("order"));
        fine();
        step(b, ed_list_of(w2, u2)); /* v2 is frozen: its slots wait on */
        assert_true(ed_restoration_count(r, ED_WAITING) > 0 || kind == SGD);

        /* saved now, nothing is lost */
        assert_non_null(ed_checkpoint_write(other, path_of("order-2")));
        ed_tensor *u3 = floats(3, 0), *v3 = floats(3, 0), *w3 = floats(3, 0);
        r = ed_checkpoint_read(with_optimizer(ed_list_of(u3, v3, w3), c), path_of("order-2"));
        fine();
        step(a, ed_list_of(u, w));
        step(c, ed_list_of(v3, u3, w3));
        step(b, ed_list_of(v2, w2, u2));
        step(a, ed_list_of(u, v, w));
        fine();
        assert_true(ed_assert_consumed(r));
        assert_true(first(u) == first(u2) && first(w) == first(w2) && first(w) == first(w3));
        if (kind != ADAM && kind != AMSGRAD) /* whose steps know how many there were */
            assert_true(first(v) == first(v2));
        assert_true(first(v2) == first(v3) && first(u2) == first(u3));
    }
}

/* Without the variables: its slots go by their order. */
static void optimizer_alone(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        ED_SCOPE;
        ed_optimizer *a = optimizer_of(kind), *b = optimizer_of(kind), *c = optimizer_of(kind);
        ed_list *x = ed_list_of(floats(3, 1), floats(2, 2)),
                *y = ed_list_of(floats(3, 1), floats(2, 2)),
                *z = ed_list_of(floats(3, 1), floats(2, 2));
        step(a, x);
        step(c, z);
        step(c, z);
        for (int i = 0; i < 2; i++) ed_assign(ed_list_get(y, i), ed_list_get(x, i));
        for (int i = 0; i < 2; i++) ed_assign(ed_list_get(z, i), ed_list_get(x, i));
        assert_non_null(ed_checkpoint_write(ed_checkpoint("o", a), path_of("alone")));
        ed_archive *file = ed_archive_open(path_of("alone"));
        for (int64_t i = 0; i < ed_archive_count(file); i++) /* no variable of another's */
            assert_null(strstr(ed_archive_name(file, i), "_trainable_variables"));
        ed_restoration *r = ed_checkpoint_read(ed_checkpoint("o", b), path_of("alone")),
                       *s = ed_checkpoint_read(ed_checkpoint("o", c), path_of("alone"));
        fine();
        assert_non_null(ed_checkpoint_write(ed_checkpoint("o", b), path_of("alone-2")));
        step(a, x);
        step(b, y);
        step(c, z);
        fine();
        assert_true(ed_assert_consumed(r) && ed_assert_consumed(s));
        assert_true(same_slots(a, b) && same_slots(a, c));
        ed_optimizer *d = optimizer_of(kind);
        ed_list *q = ed_list_of(floats(3, 0), floats(2, 0));
        ed_checkpoint_read(ed_checkpoint("o", d), path_of("alone-2"));
        step(d, q);
        fine();
        assert_true(ed_iterations(d) == 2 && (kind == SGD || !same_slots(d, optimizer_of(kind))));
    }
}

/* The bundle again with one number another. */
static void forge_number(const char *from, const char *path, const char *key, io_dtype dtype,
                         double number)
{
    const int64_t whole = fabs(number) < 1e9 ? (int64_t)number : 0;
    const float narrow = (float)number;
    const void *data = dtype == IO_INT64     ? (const void *)&whole
                       : dtype == IO_FLOAT32 ? (const void *)&narrow
                                             : (const void *)&number;
    bundle *b = bundle_open("test", from);
    bundle_writer *w = bundle_create("test", path);
    bool found = false;
    for (int64_t i = 0; i < bundle_count(b); i++) {
        const bundle_entry *e = bundle_at(b, i);
        char bytes[64];
        io_buffer message = {0};
        if (!strcmp(e->name, BUNDLE_DIGESTS)) continue;
        if (!strcmp(e->name, BUNDLE_GRAPH)) {
            assert_true(bundle_string(b, e, 0, &message));
            const io_span span = {message.data, message.size};
            assert_true(bundle_add_strings(w, e->name, 0, NULL, &span, 1));
        } else if (!strncmp(e->name, key, strlen(key))) {
            size_t size = (size_t)io_dtype_bits(dtype) / 8;
            found = bundle_add_raw(w, e->name, dtype, 0, NULL, data, size);
        } else {
            size_t size = (size_t)e->bytes;
            assert_true(size <= sizeof bytes && bundle_read(b, e, bytes));
            assert_true(bundle_add_raw(w, e->name, e->dtype, e->rank, e->shape, bytes, size));
        }
        io_buffer_free(&message);
    }
    assert_true(found && bundle_finish(w));
    ed_release(b);
}

static void numbers_that_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        io_dtype dtype;
        double value;
        const char *words; /* NULL: it is taken */
    } cases[] = {
        {"o/_iterations", IO_INT64, -1, "negative"},
        {"o/_iterations", IO_FLOAT64, NAN, "whole number"},
        {"o/_iterations", IO_FLOAT64, 0.5, "whole number"},
        {"o/_iterations", IO_FLOAT64, 1e300, "whole number"},
        {"o/_iterations", IO_FLOAT64, 17, NULL},
        {"o/_iterations", IO_FLOAT16, 1, "other dtype"},
        {"o/_learning_rate", IO_FLOAT32, NAN, "finite"},
        {"o/_learning_rate", IO_FLOAT32, -0.1, "finite"},
        {"o/_learning_rate", IO_FLOAT32, INFINITY, "finite"},
        {"o/_learning_rate", IO_FLOAT64, 1e300, "finite"},
        {"o/_learning_rate", IO_FLOAT32, 0.25, NULL},
        {"m/count", IO_INT64, -3, "negative"},
        {"save_counter", IO_INT64, -3, "negative"},
        {"save_counter", IO_INT64, 4, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ED_SCOPE;
        ed_optimizer *o = ed_adam();
        ed_metric *m = ed_mean_metric("m");
        ed_tensor *v = floats(1, 3);
        ed_checkpoint *c = ed_checkpoint("o", o, "m", m, "v", v);
        const char *saved = ed_checkpoint_save(c, path_of("numbers"));
        fine();

        forge_number(saved, path_of("forged"), cases[i].key, cases[i].dtype, cases[i].value);
        ed_assign(v, ed_full(ED_SHAPE(1), 5));
        ed_restoration *r = ed_checkpoint_restore(c, path_of("forged"));
        if (cases[i].words) {
            assert_null(r);
            failed_with(ED_INVALID_ARGUMENT, cases[i].words);
            assert_true(first(v) == 5 && ed_save_counter(c) == 1);
        } else {
            fine();
            assert_true(first(v) == 3);
        }
    }
}

/* ---- What waits ------------------------------------------------------------------------------ */

static ed_layer *mlp(void)
{
    return ed_sequential("mlp", ed_dense(4, .name = "base"),
                         ed_sequential("inner", ed_dense(3, .name = "a"), ed_dense(3, .name = "b")),
                         ed_batch_normalization(), ed_dense(2, .name = "head"));
}

static ed_tensor *input(void)
{
    return ed_constant(ED_VALUES(float, 1, -2, 3, 4, 5, -6), ED_SHAPE(2, 3));
}

static double run(ed_layer *model)
{
    ED_SCOPE;
    return ed_item(ed_reduce_sum(ed_square(ed_forward(model, input()))));
}

static void train(ed_layer *model, ed_optimizer *o)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_mean(ed_square(ed_forward(model, input(), .training = true)));
    ed_minimize(o, tape, loss, ed_trainable(model));
}

/* Restored and saved again before anything was called, twice: nothing is lost. */
static void saved_while_waiting(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        ED_SCOPE;
        ed_layer *model = mlp();
        ed_optimizer *o = optimizer_of(kind);
        for (int i = 0; i < 3; i++) train(model, o);
        const char *path = path_of("first");
        assert_non_null(ed_checkpoint_write(ed_checkpoint("m", model, "o", o), path));
        ed_layer *last = NULL;
        ed_optimizer *p = NULL;
        ed_restoration *r = NULL;
        for (int i = 0; i < 3; i++) {
            last = mlp();
            p = optimizer_of(kind);
            ed_checkpoint *c = ed_checkpoint("m", last, "o", p);
            r = ed_checkpoint_read(c, path);
            fine();
            if (i == 1) run(last); /* the second has weights, and no slots */
            path = i ? path_of("third") : path_of("second");
            assert_non_null(ed_checkpoint_write(c, path));
        }
        assert_true(run(last) == run(model));
        for (int i = 0; i < 3; i++) {
            train(model, o);
            train(last, p);
            assert_true(run(last) == run(model));
        }
        fine();
        assert_true(ed_assert_consumed(r) && same_slots(o, p));
    }
}

/* A model that was never called has nothing; what it is restored into begins anew. */
static void saved_unbuilt(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *a = mlp(), *b = mlp(), *c = mlp();
    const char *path = path_of("unbuilt");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), path));
    ed_checkpoint_read(ed_checkpoint("m", b), path);
    fine();
    ed_set_seed(3);
    double fresh = run(a);
    ed_set_seed(3);
    assert_true(run(b) == fresh);
    run(c);
    assert_null(ed_checkpoint_read(ed_checkpoint("m", c), path));
    failed_with(ED_INVALID_ARGUMENT, "missing in the file: m/base/kernel");
}

/* A restore of a part leaves alone what an older one left waiting; one of all is the last word. */
static void restored_twice(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *one = mlp(), *two = mlp(), *model = mlp(), *other = mlp();
    ed_optimizer *o = ed_adam(), *p = ed_adam();
    train(one, o);
    train(one, o);
    run(two);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", one, "o", o), path_of("one")));
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", two), path_of("two")));
    ed_checkpoint *c = ed_checkpoint("m", model, "o", p);
    ed_restoration *r = ed_checkpoint_read(c, path_of("one"));
    ed_checkpoint_read(c, path_of("two"), .only = ED_TEXTS("m/base*"));
    fine();
    run(model);
    double base = first(ed_list_get(ed_variables(ed_layer_at(model, 0)), 0)),
           head = first(ed_list_get(ed_variables(ed_layer_at(model, -1)), 0));
    assert_true(base == first(ed_list_get(ed_variables(ed_layer_at(two, 0)), 0)));
    assert_true(head == first(ed_list_get(ed_variables(ed_layer_at(one, -1)), 0)));
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 2 + 2 * 10);
    train(model, p);
    train(one, o);
    fine();
    /* base's, of the first file, with their slots: those variables came from elsewhere */
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 2 + 4);
    assert_int_equal(ed_iterations(p), 3);

    ed_checkpoint *d = ed_checkpoint("m", other);
    ed_checkpoint_read(d, path_of("one"), .partial = true);
    ed_checkpoint_read(d, path_of("two"));
    fine();
    assert_true(run(other) == run(two));
}

/* A layer whose children come when it is called, one of which brings a number of its own. */
typedef struct late {
    int64_t units;
    bool more;
} late;

static void track_counted(ed_layer *layer, ed_tracker *t)
{
    ed_track_int64(t, "calls", ed_layer_state(layer));
}

static ed_tensor *count_call(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    (void)options;
    ++*(int64_t *)ed_layer_state(layer);
    return x;
}

static const ed_layer_class counted_class = {.name = "counted",
                                             .state_size = sizeof(int64_t),
                                             .forward = count_call,
                                             .track = track_counted};

static bool build_late(ed_layer *layer, ed_tensor *x)
{
    (void)x;
    const late *l = ed_layer_state(layer);
    ed_layer_add(layer, ed_sequential("net", ed_dense(l->units, .name = "in"), ed_dense(2)));
    ed_layer_add(layer, ed_layer_new(&counted_class, "calls"));
    if (l->more) ed_layer_add(layer, ed_sequential("more", ed_dense(2)));
    return ed_layer_weight(layer, "scale", ED_SHAPE(), .initializer.kind = ED_INIT_ONES);
}

static ed_tensor *forward_late(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    for (int64_t i = 0; i < ed_layer_count(layer); i++)
        x = ed_forward_with(ed_layer_at(layer, i), x, options);
    return x ? ed_mul(x, ed_list_get(ed_variables(layer), 0)) : NULL;
}

static const ed_layer_class late_class = {
    .name = "late", .state_size = sizeof(late), .build = build_late, .forward = forward_late};

static ed_layer *late_new(int64_t units, bool more)
{
    ed_layer *layer = ed_layer_new(&late_class, "late");
    *(late *)ed_layer_state(layer) = (late){units, more};
    return layer;
}

static void late_children(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = path_of("late");
    ed_layer *a = late_new(4, false), *b = late_new(4, false), *wide = late_new(5, false),
             *more = late_new(4, true);
    run(a);
    run(a);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), path));
    ed_restoration *r = ed_checkpoint_read(ed_checkpoint("m", b), path);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", b), path_of("late-2")));
    double twice = run(a), once = run(b);
    fine();
    assert_true(twice == once && ed_assert_consumed(r));
    assert_int_equal(ed_restoration_count(r, ED_RESTORED),
                     6); /* with the counter, while it built */
    assert_int_equal(*(int64_t *)ed_layer_state(ed_layer_at(b, 1)), 3);
    ed_layer *again = late_new(4, false);
    ed_checkpoint_read(ed_checkpoint("m", again), path_of("late-2"));
    assert_true(run(again) == once);
    assert_int_equal(*(int64_t *)ed_layer_state(ed_layer_at(again, 1)), 3);
    fine();

    /* another shape: refused at each call, until it is not waited for */
    r = ed_checkpoint_read(ed_checkpoint("m", wide), path);
    fine();
    int64_t waiting = ed_restoration_count(r, ED_WAITING);
    for (int i = 0; i < 3; i++) {
        assert_null(ed_forward(wide, input()));
        failed_with(ED_INVALID_ARGUMENT, "late/net/in/kernel is float32[3, 5], in the checkpoint");
    }
    assert_true(ed_expect_partial(r) && ed_restoration_count(r, ED_WAITING) == 0 && waiting > 0);
    assert_non_null(ed_forward(wide, input()));

    /* a child that the file does not have */
    ed_checkpoint_read(ed_checkpoint("m", more), path);
    fine();
    for (int i = 0; i < 2; i++) {
        assert_null(ed_forward(more, input()));
        failed_with(ED_NOT_FOUND, "to be restored whole, has no value for");
    }
    ed_checkpoint_read(ed_checkpoint("m", more), path, .partial = true);
    assert_non_null(ed_forward(more, input()));
    fine();
}

/* A layer that is added when the restore is over is the program's own affair. */
static void layers_added_later(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *a = mlp(), *b = mlp();
    run(a);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), path_of("added")));
    ed_checkpoint *c = ed_checkpoint("m", b);
    ed_restoration *r = ed_checkpoint_read(c, path_of("added"));
    ed_layer_add(b, ed_dense(7, .name = "top"));
    run(b);
    fine();
    assert_false(ed_assert_consumed(r));
    failed_with(ED_FAILED_PRECONDITION, "not restored: m/top/kernel, m/top/bias");
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 0);
    assert_null(ed_checkpoint_read(c, path_of("added")));
    failed_with(ED_INVALID_ARGUMENT, "missing in the file: m/top/kernel, m/top/bias");
}

/* Everything is given up in each order; what is left goes on. */
static void released_in_every_order(void **state)
{
    (void)state;
    enum { CHECKPOINT, RESTORATION, MODEL, OPTIMIZER, THINGS };
    ED_SCOPE;
    ed_layer *a = mlp();
    ed_optimizer *o = ed_adam();
    train(a, o);
    const char *path = path_of("orders");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a, "o", o), path));
    double expected = run(a);
    for (int order = 0; order < 24; order++) {
        void *things[THINGS];
        {
            ED_SCOPE;
            things[MODEL] = ed_retain(mlp());
            things[OPTIMIZER] = ed_retain(ed_adam());
            things[CHECKPOINT] =
                ed_retain(ed_checkpoint("m", things[MODEL], "o", things[OPTIMIZER]));
            ed_checkpoint_read(things[CHECKPOINT], path); /* an older one, taken over */
            things[RESTORATION] = ed_retain(ed_checkpoint_read(things[CHECKPOINT], path));
            fine();
        }
        for (int left = THINGS, code = order; left; code /= left--) {
            ED_SCOPE;
            int chosen = 0;
            for (int skip = code % left; things[chosen] == NULL || skip-- > 0;) chosen++;
            if (things[MODEL] && order % 2) assert_true(run(things[MODEL]) == expected);
            if (things[RESTORATION]) {
                bool held = things[CHECKPOINT] && ed_assert_consumed(things[RESTORATION]);
                if (!things[CHECKPOINT]) ed_assert_consumed(things[RESTORATION]);
                assert_true(held == !ed_failed());
                ed_clear_error();
                assert_non_null(ed_restoration_report(things[RESTORATION]));
            }
            ed_release(things[chosen]);
            things[chosen] = NULL;
            fine();
        }
    }
    ed_restoration *r;
    {
        ED_SCOPE;
        r = ed_keep(ed_checkpoint_read(ed_checkpoint("m", mlp(), "o", ed_adam()), path));
    }
    assert_false(ed_assert_existing_objects_matched(r));
    failed_with(ED_FAILED_PRECONDITION, "the checkpoint is gone");
}

/* ---- Other threads, other processes ---------------------------------------------------------- */

typedef struct job {
    ed_checkpoint *checkpoint;
    const char *path, *own;
    bool ok;
} job;

static void *restore_it(void *user)
{
    ED_SCOPE;
    job *j = user;
    for (int i = 0; i < 20; i++) {
        ED_SCOPE;
        j->ok = ed_checkpoint_read(j->checkpoint, j->path) &&
                ed_checkpoint_write(j->checkpoint, j->own);
    }
    return NULL;
}

/* Each thread its own objects; what one restored, another uses when it is done. */
static void threads(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { THREADS = 4 };
    ed_layer *a = mlp(), *models[THREADS];
    run(a);
    const char *path = path_of("threads");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), path));
    pthread_t ids[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        models[i] = mlp();
        if (i % 2) run(models[i]);
        static const char *own[THREADS] = {"own-0", "own-1", "own-2", "own-3"};
        jobs[i] = (job){ed_checkpoint("m", models[i]), path, path_of(own[i]), false};
        assert_int_equal(pthread_create(&ids[i], NULL, restore_it, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS; i++) assert_true(jobs[i].ok && run(models[i]) == run(a));
    fine();
}

static void children(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *a = mlp(), *b = mlp();
    run(a);
    const char *path = path_of("fork");
    ed_checkpoint *c = ed_checkpoint("m", b);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a), path));
    ed_checkpoint_read(c, path);
    pid_t child = fork();
    if (child == 0) {
        bool ok = run(b) == run(a) && ed_checkpoint_read(c, path) &&
                  ed_checkpoint_write(c, path_of("fork-child"));
        _exit(ok && !ed_failed() ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(run(b) == run(a));
    ed_checkpoint_read(c, path_of("fork-child"));
    fine();
}

/* ---- Files that lie -------------------------------------------------------------------------- */

/* An object graph in the making: a message of nodes, each a message of fields. */
typedef struct forged {
    io_buffer graph, node;
} forged;

static void put_child(forged *f, uint64_t node, const char *name, size_t length)
{
    io_buffer child = {0};
    io_put_field_varint(&child, 1, node);
    io_put_field_bytes(&child, 2, name, length);
    io_put_field_bytes(&f->node, 1, child.data, child.size);
    io_buffer_free(&child);
}

static void child(forged *f, uint64_t node, const char *name)
{
    put_child(f, node, name, strlen(name));
}

static void attribute(forged *f, const char *name, const char *key)
{
    io_buffer a = {0};
    if (name) io_put_field_bytes(&a, 1, name, strlen(name));
    if (key) io_put_field_bytes(&a, 3, key, strlen(key));
    io_put_field_bytes(&f->node, 2, a.data, a.size);
    io_buffer_free(&a);
}

static void value(forged *f, const char *key)
{
    attribute(f, "VARIABLE_VALUE", key);
}

static void slot(forged *f, uint64_t of, const char *name, uint64_t node)
{
    io_buffer s = {0};
    io_put_field_varint(&s, 1, of);
    io_put_field_bytes(&s, 2, name, strlen(name));
    io_put_field_varint(&s, 3, node);
    io_put_field_bytes(&f->node, 3, s.data, s.size);
    io_buffer_free(&s);
}

static void node_done(forged *f)
{
    io_put_field_bytes(&f->graph, 1, f->node.data, f->node.size);
    io_buffer_free(&f->node);
    f->node = (io_buffer){0};
}

/* The graph beside the entries "x", "y" (three floats of 4, of 5) and "text". */
static void write_forged(forged *f, const char *path)
{
    const float x[] = {4, 4, 4}, y[] = {5, 5, 5};
    const int64_t shape[] = {3};
    const io_span words = {(const uint8_t *)"words", 5}, message = {f->graph.data, f->graph.size};
    bundle_writer *w = bundle_create("test", path);
    assert_true(bundle_add_raw(w, "x", IO_FLOAT32, 1, shape, x, sizeof x) &&
                bundle_add_raw(w, "y", IO_FLOAT32, 1, shape, y, sizeof y) &&
                bundle_add_strings(w, "text", 0, NULL, &words, 1) &&
                bundle_add_strings(w, BUNDLE_GRAPH, 0, NULL, &message, 1) && bundle_finish(w));
    io_buffer_free(&f->graph);
    f->graph = (io_buffer){0};
}

enum { FORGERIES = 24 };

/* What comes of it where "v" is a variable of three floats: its value after, or an error's kind and
 * words. Forgeries from 100 on are restored in part. */
static double forge(forged *f, int which, ed_error_code *kind, const char **words)
{
    *kind = ED_DATA_LOSS;
    *words = "object graph is damaged";
    switch (which) {
    case 0: return 0; /* no nodes at all */
    case 1:
        child(f, 2, "v");
        node_done(f);
        node_done(f);
        return 0;
    case 2:
        child(f, (uint64_t)-1, "v");
        node_done(f);
        return 0;
    case 3:
        child(f, 1ull << 32, "v");
        node_done(f);
        node_done(f);
        return 0;
    case 4:
        put_child(f, 1, "v\0w", 3);
        node_done(f);
        node_done(f);
        return 0;
    case 5:
        slot(f, 7, "m", 0);
        node_done(f);
        return 0;
    case 6:
        slot(f, 0, "m", (uint64_t)-1);
        node_done(f);
        return 0;
    case 7:
        io_put_u8(&f->node, 0x0a);
        io_put_varint(&f->node, 1000);
        node_done(f);
        return 0;
    case 8: io_put(&f->graph, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12); return 0;
    default: break;
    }
    *kind = ED_NOT_FOUND;
    child(f, 1, "v");
    if (which == 9) child(f, 2, "v"); /* twice: the first */
    if (which == 10) child(f, 0, "self");
    if (which == 11) child(f, 1, "also");
    if (which == 23) child(f, 2, "w");
    node_done(f);
    switch (which) {
    case 9:
    case 10:
    case 11:
        value(f, "x");
        *kind = ED_OK;
        break;
    case 12:
        value(f, "nowhere");
        *words = "no entry nowhere";
        break;
    case 13:
        value(f, "");
        *words = "no entry";
        break;
    case 14:
        attribute(f, "VARIABLE_VALUE", NULL);
        *words = "no entry";
        break;
    case 15:
        attribute(f, NULL, NULL);
        *kind = ED_INVALID_ARGUMENT;
        *words = "missing in the file: v";
        break;
    case 16:
        attribute(f, "OTHER", "y");
        value(f, "x");
        value(f, "y");
        *kind = ED_OK;
        break;
    case 17:
        value(f, "text");
        *kind = ED_INVALID_ARGUMENT;
        *words = "v is float32[3] here and string[] in the file";
        break;
    case 18:
        value(f, BUNDLE_GRAPH);
        *kind = ED_INVALID_ARGUMENT;
        *words = "v is float32[3] here";
        break;
    case 19:
        value(f, BUNDLE_DIGESTS);
        *kind = ED_INVALID_ARGUMENT;
        *words = "v is float32[3] here";
        break;
    case 20:
        child(f, 1, "below");
        value(f, "x");
        *kind = ED_OK;
        break; /* an object too */
    case 21:
        child(f, 0, "up");
        slot(f, 0, "m", 1);
        slot(f, 1, "m", 1);
        value(f, "x");
        *kind = ED_OK;
        break;
    case 22:
        *kind = ED_INVALID_ARGUMENT;
        *words = "missing in the file: v";
        break;
    case 23:
        value(f, "x");
        node_done(f);
        value(f, "y");
        *kind = ED_INVALID_ARGUMENT;
        *words = "unexpected in the file: y";
        break;
    default: break;
    }
    node_done(f);
    if (which == 9) {
        attribute(f, "OTHER", "y");
        node_done(f);
    }
    return 4;
}

static void forgeries(void **state)
{
    (void)state;
    for (int i = 0; i < FORGERIES; i++) {
        ED_SCOPE;
        forged f = {0};
        ed_error_code kind;
        const char *words;
        double expected = forge(&f, i, &kind, &words);
        write_forged(&f, path_of("forgery"));
        ed_tensor *v = floats(3, 9);
        ed_restoration *r =
            ed_checkpoint_read(ed_checkpoint("v", v), path_of("forgery"), .partial = i == 9);
        if (kind) {
            if (r) fail_msg("forgery %d was restored", i);
            failed_with(kind, words);
        } else {
            if (!r) fail_msg("forgery %d: %s", i, ed_error());
        }
        assert_true(first(v) == (kind ? 9 : expected));

        /* whatever it is, everything else takes it in its stride */
        ed_layer *layer = ed_sequential("m", ed_dense(2));
        ed_optimizer *o = ed_adam();
        ed_checkpoint *c = ed_checkpoint("v", layer, "self", o, "also", v);
        if ((r = ed_checkpoint_read(c, path_of("forgery"), .partial = true))) {
            ed_assert_consumed(r);
            ed_clear_error();
            assert_non_null(ed_restoration_report(r));
            train(layer, o);
            assert_non_null(ed_checkpoint_write(c, path_of("forgery-2")));
        }
        ed_clear_error();
    }
}

/* A variable where the file has an object, an object where it has a value. */
static void objects_for_values(void **state)
{
    (void)state;
    ED_SCOPE;
    bag inner = bag_new(1);
    put(&inner, "n", NULL);
    inner.numbers[0] = 3;
    ed_trackable *object = ed_trackable_new(&bag_class, &inner);
    ed_tensor *v = floats(2, 1);
    assert_non_null(ed_checkpoint_write(ed_checkpoint("a", object), path_of("object")));
    assert_non_null(ed_checkpoint_write(ed_checkpoint("a", v), path_of("value")));
    assert_null(ed_checkpoint_read(ed_checkpoint("a", v), path_of("object")));
    failed_with(ED_INVALID_ARGUMENT, "missing in the file: a; unexpected in the file: a/n");
    assert_null(ed_checkpoint_read(ed_checkpoint("a", object), path_of("value")));
    failed_with(ED_INVALID_ARGUMENT, "missing in the file: a/n; unexpected in the file: a ");
    ed_restoration *r =
        ed_checkpoint_read(ed_checkpoint("a", v), path_of("object"), .partial = true);
    fine();
    assert_false(ed_assert_existing_objects_matched(r));
    failed_with(ED_FAILED_PRECONDITION, "not restored: a");
    r = ed_checkpoint_read(ed_checkpoint("a", object), path_of("value"), .partial = true);
    fine();
    assert_true(first(v) == 1 && inner.numbers[0] == 3);
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 0);
    bag_free(&inner);
}

/* Much in a small file, and slow only if something is quadratic: n empty nodes; a chain of n values
 * below a layer that waits, whose names would come to gigabytes; n values that are all one entry; n
 * names that the usual hash takes for one. */
static void small_files_of_much(void **state)
{
    (void)state;
    double start = work();
    for (int which = 0; which < 4; which++) {
        ED_SCOPE;
        enum { N = 5 * MANY };
        int n = which == 0 ? 2 * N : N;
        forged f = {0};
        child(&f, 1, "m");
        if (which == 3)
            for (int i = 0; i < n; i++) {
                char name[32];
                snprintf(name, sizeof name, "%c%c%d", i & 1 ? 'a' : 'b', i & 2 ? 'c' : 'd', i);
                child(&f, 2, name);
            }
        node_done(&f);
        if (which == 2)
            for (int i = 0; i < n; i++) child(&f, 2 + (uint64_t)i, "again");
        if (which == 1) child(&f, 2, "next");
        node_done(&f);
        for (int i = 0; i < n; i++) {
            if (which == 1 && i + 1 < n) child(&f, 3 + (uint64_t)i, "a.long.name");
            if (which == 1) value(&f, i ? "x" : "y");
            if (which == 2) value(&f, "x");
            node_done(&f);
        }
        int64_t size = (int64_t)f.graph.size;
        write_forged(&f, path_of("much"));
        ed_layer *layer = ed_dense(2);
        ed_checkpoint *c = ed_checkpoint("m", layer);
        ed_memory_reset_peak();
        int64_t before = ed_memory_stats().live_bytes;
        ed_restoration *r = ed_checkpoint_read(c, path_of("much"), .partial = true);
        int64_t peak = ed_memory_stats().peak_bytes - before;
        print_message("%lld bytes, at most %lld\n", (long long)size, (long long)peak);
        if (peak > 64 * size + (1 << 20))
            fail_msg("%lld bytes for a file of %lld", (long long)peak, (long long)size);
        if (!r) {
            failed_with(ED_DATA_LOSS, "names values twice");
            continue;
        }
        if (ed_checkpoint_write(c, path_of("much-2")) == NULL)
            failed_with(ED_OUT_OF_RANGE, "too deep");
        ed_forward(layer, input());
        fine();
    }
    assert_true(work() - start < 60);
}

/* A chain as above whose every value is there: names are kept as far as the file is large. */
static void chain_that_waits(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = MANY / 10 };
    forged f = {0};
    child(&f, 1, "m");
    node_done(&f);
    bundle_writer *w = bundle_create("test", path_of("waits"));
    for (int i = 0; i < N; i++) {
        char key[32];
        const float x = (float)i;
        snprintf(key, sizeof key,
                 "%d"
                 "/.ATTRIBUTES/VARIABLE_VALUE",
                 i);
        child(&f, 2 + (uint64_t)i, "next");
        if (i) value(&f, key);
        node_done(&f);
        assert_true(bundle_add_raw(w, key, IO_FLOAT32, 0, NULL, &x, sizeof x));
    }
    node_done(&f);
    const io_span message = {f.graph.data, f.graph.size};
    assert_true(bundle_add_strings(w, BUNDLE_GRAPH, 0, NULL, &message, 1) && bundle_finish(w));
    ed_memory before = ed_memory_stats();
    ed_checkpoint *c = ed_checkpoint("m", ed_dense(2));
    ed_restoration *r = ed_checkpoint_read(c, path_of("waits"));
    fine();
    assert_int_equal(ed_restoration_count(r, ED_WAITING), N - 1);
    assert_string_equal(ed_restoration_path(r, ED_WAITING, 0), "m/next");
    assert_true(strlen(ed_restoration_path(r, ED_WAITING, N - 2)) < 64); /* its key */
    assert_true(strlen(ed_restoration_report(r)) < 3 * f.graph.size);
    assert_true(ed_memory_stats().live_bytes - before.live_bytes < (int64_t)f.graph.size * 20);
    io_buffer_free(&f.graph);
    ed_checkpoint_write(
        c, path_of("waits-2")); /* nothing of that is written: its names are too long */
    if (N < 5000)
        ed_clear_error();
    else
        fine();
}

/* ---- Paths ----------------------------------------------------------------------------------- */

static void paths(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = floats(2, 1);
    ed_checkpoint *c = ed_checkpoint("v", v);
    const char *saved = path_of("100%n%s%d /größe\n'\"");
    assert_non_null(ed_checkpoint_write(c, saved));
    ed_restoration *r = ed_checkpoint_read(c, saved);
    fine();
    assert_non_null(strstr(ed_restoration_report(r), saved));
    assert_null(ed_checkpoint_read(c, path_of("%n%n%n%s")));
    failed_with(ED_NOT_FOUND, "%n%n%n%s");

    char *long_path = malloc(5000);
    memset(long_path, 'a', 4999);
    memcpy(long_path, "/tmp/", 5);
    long_path[4999] = 0;
    assert_null(ed_checkpoint_write(c, long_path));
    assert_true(ed_failed());
    ed_clear_error();
    assert_null(ed_checkpoint_read(c, long_path));
    assert_true(ed_failed());
    ed_clear_error();
    assert_null(ed_checkpoint_save(c, long_path));
    assert_true(ed_failed() && ed_save_counter(c) == 0);
    ed_clear_error();
    free(long_path);

    assert_null(ed_checkpoint_read(c, folder)); /* a folder: there is no folder.index */
    failed_with(ED_NOT_FOUND, folder);
    assert_null(ed_checkpoint_read(c, ""));
    assert_true(ed_failed());
    ed_clear_error();
    assert_int_equal(mkdir(path_of("is-folder.index"), 0700), 0);
    assert_null(ed_checkpoint_read(c, path_of("is-folder")));
    failed_with(ed_error_kind(), "is-folder");
    assert_int_equal(mkfifo(path_of("fifo.index"), 0600), 0);
    alarm(60);
    assert_null(ed_checkpoint_read(c, path_of("fifo"))); /* nobody writes: it must not wait */
    failed_with(ed_error_kind(), "fifo");
    assert_null(ed_checkpoint_write(c, "/dev/null/x"));
    failed_with(ed_error_kind(), "/dev/null");
    assert_null(ed_checkpoint_read(c, "/dev/zero"));
    failed_with(ED_NOT_FOUND, "/dev/zero");
    alarm(0);
    if (geteuid()) {
        assert_non_null(ed_checkpoint_write(c, path_of("secret")));
        chmod(path_of("secret.index"), 0);
        assert_null(ed_checkpoint_read(c, path_of("secret")));
        failed_with(ED_IO, "secret");
    }
}

/* A SavedModel's folder means the variables in it. */
static void saved_models(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = floats(2, 1);
    ed_checkpoint *c = ed_checkpoint("v", v);
    assert_non_null(ed_checkpoint_write(c, path_of("saved_model/variables/variables")));
    ed_assign(v, ed_zeros(ED_SHAPE(2)));
    ed_restoration *r = ed_checkpoint_restore(c, path_of("saved_model"), .partial = true);
    fine();
    assert_true(first(v) == 1 && ed_restoration_count(r, ED_RESTORED) == 1);
}

/* What is gone or damaged is so called, whatever the program has: the manager goes by that. */
static void damaged_is_not_unfit(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = path_of("gone");
    char shard[200], index[200];
    snprintf(shard, sizeof shard, "%s.data-00000-of-00001", path);
    snprintf(index, sizeof index, "%s.index", path);
    ed_tensor *v = floats(200, 1);
    ed_checkpoint *c = ed_checkpoint("v", v);
    for (int i = 0; i < 4; i++) {
        assert_non_null(ed_checkpoint_write(c, path));
        if (i == 0) assert_int_equal(unlink(shard), 0);
        if (i == 1) assert_int_equal(truncate(shard, 100), 0);
        if (i == 2) assert_int_equal(truncate(index, 30), 0);
        if (i == 3) assert_int_equal(unlink(index), 0);
        for (int wide = 0; wide < 2; wide++) { /* also where the shape is another */
            ed_checkpoint *d = wide ? ed_checkpoint("v", floats(3, 1)) : c;
            assert_null(ed_checkpoint_read(d, path));
            if (i == 0)
                assert_true(ed_error_kind() == ED_NOT_FOUND || ed_error_kind() == ED_DATA_LOSS);
            if (i == 1 || i == 2) assert_int_equal(ed_error_kind(), ED_DATA_LOSS);
            if (i == 3) assert_int_equal(ed_error_kind(), ED_NOT_FOUND);
            ed_clear_error();
        }
    }
}

/* ---- Refused allocations --------------------------------------------------------------------- */

/* A restore that fails has changed nothing, one that waits can be saved; at each allocation. */
static void refused(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_layer *a = late_new(4, false);
    ed_optimizer *o = ed_adam();
    train(a, o);
    const char *path = path_of("refused");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("m", a, "o", o), path));
    double expected = run(a);
    int64_t rounds = 0;
    for (bool whole = false; !whole; rounds++) {
        ED_SCOPE;
        ed_layer *b = late_new(4, false);
        ed_optimizer *p = ed_adam();
        ed_checkpoint *c = ed_checkpoint("m", b, "o", p);
        ed_memory_fail_at(rounds, false);
        ed_restoration *r = ed_checkpoint_read(c, path);
        const char *saved = r ? ed_checkpoint_write(c, path_of("refused-2")) : NULL;
        ed_tensor *y = saved ? ed_forward(b, input()) : NULL;
        whole = !ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        assert_true(whole == !!y);
        assert_true(whole == !ed_failed());
        ed_clear_error();
        assert_int_equal(ed_iterations(p), r ? 1 : 0);
        if (!r) assert_non_null(r = ed_checkpoint_read(c, path));
        assert_non_null(ed_checkpoint_write(c, path_of("refused-2")));
        assert_true(run(b) == expected);
        assert_int_equal(ed_restoration_count(r, ED_WAITING), 10);
        fine();
    }
    assert_true(rounds > 300);
}

/* ---- All ------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/eddy_hostile_XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static int end(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static int64_t tensors_before;

static int note_tensors(void **state)
{
    (void)state;
    tensors_before = ed_memory_stats().live_tensors;
    return 0;
}

static int check_end(void **state)
{
    (void)state;
    bool failed = ed_failed();
    if (failed) print_message("left: %s\n", ed_error());
    ed_clear_error();
    return failed || ed_memory_stats().live_tensors != tensors_before;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, note_tensors, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(circles),
        TEST(names_of_all_kinds),
        TEST(misbehaving),
        TEST(on_the_spot),
        TEST(bad_arguments),
        TEST(time_is_linear),
        TEST(deep),
        TEST(backward_chain),
        TEST(every_dtype),
        TEST(old_values_stay),
        TEST(memory),
        TEST(kinds_of_optimizers),
        TEST(steps_too_early),
        TEST(order_of_variables),
        TEST(optimizer_alone),
        TEST(numbers_that_cannot_be),
        TEST(saved_while_waiting),
        TEST(saved_unbuilt),
        TEST(restored_twice),
        TEST(late_children),
        TEST(layers_added_later),
        TEST(released_in_every_order),
        TEST(threads),
        TEST(children),
        TEST(forgeries),
        TEST(objects_for_values),
        TEST(small_files_of_much),
        TEST(chain_that_waits),
        TEST(paths),
        TEST(saved_models),
        TEST(damaged_is_not_unfit),
        TEST(refused),
    };
    if (getenv("ONLY")) cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests(tests, begin, end);
}
