/*
 * Saving and restoring under attack: objects that hang together in strange ways, track functions
 * that misbehave, values of all kinds, odd paths. And that the time for n values is n's. Files
 * whose object graphs lie are in test_checkpoint_forged.c, what models and optimizers add is in
 * test_checkpoint_models.c.
 */
#include "io/bundle.h"
#include "track/graph.h"
#include "tests/folders.h"
#include "tests/program.h"
#include <time.h>

#ifdef EDDY_SANITIZED
enum { MANY = 10000 };
#else
enum { MANY = 100000 };
#endif

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

static const ed_trackable_class bag_class = {.name = "bag", .track = track_bag};

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
    const char *path = in_folder("circles");
    assert_non_null(ed_checkpoint_write(c, path));
    a.numbers[2] = b.numbers[3] = 0;
    ed_assign(v, ed_zeros(ED_SHAPE(2)));
    ed_restoration *r = ed_checkpoint_read(c, path);
    assert_fine();
    assert_true(a.numbers[2] == 5 && b.numbers[3] == 6 && first(v) == 7);
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 3); /* shared ones are saved once */
    assert_true(ed_restoration_assert_consumed(r) && ed_restoration_assert_nontrivial_match(r));
    bag_free(&a);
    bag_free(&b);
}

/* Names that TensorFlow can't read back are refused, whenever they come. */
static void names_refused(void **state)
{
    (void)state;
    ED_SCOPE;
    static const char *const names[] = {"\xff\xfe\x80", "a\xc3", ".ATTRIBUTES"};
    int64_t number = 0;
    assert_null(ed_checkpoint_write(ed_checkpoint("root", ed_counter(&number)), in_folder("r")));
    failed_with(ED_INVALID_ARGUMENT, "an object named 'root'");
    for (int i = 0; i < 3; i++) {
        ed_checkpoint *named = ed_checkpoint(names[i], ed_counter(&number));
        assert_null(ed_checkpoint_write(named, in_folder("r")));
        failed_with(ED_INVALID_ARGUMENT, "checkpoint: the name");
        bag a = bag_new(1);
        ed_checkpoint *c = ed_checkpoint("a", ed_trackable_new(&bag_class, &a));
        put(&a, names[i], NULL); /* later */
        assert_null(ed_checkpoint_write(c, in_folder("refused")));
        failed_with(ED_INVALID_ARGUMENT, "checkpoint: the name");
        assert_int_not_equal(access(in_folder("refused.index"), F_OK), 0);
        bag_free(&a);
    }
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
                           "root",
                           "save_counter",
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
    const char *path = in_folder("names");
    assert_non_null(ed_checkpoint_write(ed_checkpoint("top", a.objects[N]), path));
    ed_restoration *r = ed_checkpoint_read(ed_checkpoint("top", b.objects[N]), path);
    assert_fine();
    for (int i = 0; i < N; i++)
        if (b.numbers[i] != 100 + i) fail_msg("'%.40s' is %lld", names[i], (long long)b.numbers[i]);
    assert_true(ed_restoration_assert_consumed(r));

    /* the same paths in patterns and renames: escaped */
    memset(b.numbers, 0, N * sizeof *b.numbers);
    ed_checkpoint_read(ed_checkpoint("top", b.objects[N]), path,
                       .only = ED_STRINGS("top/a.Sb", "top/", "top/..S"));
    assert_fine();
    for (int i = 0; i < N; i++) {
        bool wanted = !strcmp(names[i], "a/b") || !*names[i] || !strcmp(names[i], ".S");
        assert_int_equal(b.numbers[i], wanted ? 100 + i : 0);
    }
    bag one = bag_new(1);
    put(&one, "other", NULL);
    ed_checkpoint *other = ed_checkpoint("mine", ed_trackable_new(&bag_class, &one));
    ed_checkpoint_read(other, path, .partial = true,
                       .renames = ED_STRINGS("mine/other", "top/a...SSb"));
    failed_with(ED_NOT_FOUND, "top/a...SSb not found in the file");
    ed_checkpoint_read(other, path, .partial = true,
                       .renames = ED_STRINGS("mine/other", "top/a..Sb"));
    assert_fine();
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

static const ed_trackable_class number_class = {.name = "number", .track = track_number};

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

static const ed_trackable_class odd_class = {.name = "odd", .track = track_odd};

static void misbehaving(void **state)
{
    (void)state;
    ED_SCOPE;
    struct odd o = {.what = 99, .variable = floats(2, 1)};
    ed_trackable *trackable = ed_trackable_new(&odd_class, &o);
    ed_checkpoint *sound = ed_checkpoint("odd", trackable, "v", o.variable);
    assert_fine();
    for (o.what = 0; o.what < 14; o.what++) {
        ed_memory before = ed_memory_stats();
        {
            ED_SCOPE;
            assert_null(ed_checkpoint("odd", trackable));
            assert_true(ed_failed());
            ed_clear_error();
            assert_null(ed_checkpoint_write(sound, in_folder("odd")));
            assert_true(ed_failed());
            ed_clear_error();
        }
        assert_int_equal(ed_memory_stats().live_bytes, before.live_bytes);
    }
    o.what = 14;
    assert_null(ed_checkpoint_write(sound, in_folder("odd")));
    assert_true(ed_failed());
    ed_clear_error();
    assert_int_not_equal(access(in_folder("odd.index"), F_OK), 0);

    /* an error of before is no failure of the function */
    o.what = 99;
    ed_fail(ED_UNIMPLEMENTED, "before");
    assert_non_null(ed_checkpoint_write(sound, in_folder("odd")));
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
    for (int i = 0; i < 20; i++) assert_non_null(ed_checkpoint_write(ca, in_folder("spot")));
    /* what the function made is gone each time: only the texts of paths stay in this scope */
    assert_true(ed_memory_stats().live_bytes - before.live_bytes < 20 * 512);
    ed_checkpoint_read(cb, in_folder("spot"));
    assert_fine();
    assert_true(b.numbers[0] == 3 && b.numbers[1] == 4);

    a.what = b.what = 21;
    assert_non_null(ed_checkpoint_write(ca, in_folder("spot")));
    a.numbers[0] = 9;
    ed_restoration *r = ed_checkpoint_read(ca, in_folder("spot"));
    assert_fine();
    assert_true(a.numbers[0] == 3 && ed_restoration_assert_consumed(r));

    a = (struct odd){.what = 22, .numbers = {8}, .asked = 0};
    assert_non_null(ed_checkpoint_write(ca, in_folder("spot")));
    a.asked = 9;
    assert_null(ed_checkpoint_read(ca, in_folder("spot")));
    failed_with(ED_INVALID_ARGUMENT, "missing from the file: x/later; unexpected in the file: "
                                     "x/early");
}

static void bad_arguments(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = floats(2, 1);
    const void *pairs[] = {"a", v, "b", v};
    assert_null(ed_checkpoint_of(pairs, -2));
    failed_with(ED_INVALID_ARGUMENT, "pairs of name and object, got");
    assert_null(ed_checkpoint_of(pairs, 3));
    failed_with(ED_INVALID_ARGUMENT, "pairs of name and object, got");
    assert_null(ed_checkpoint_of(NULL, 2));
    failed_with(ED_INVALID_ARGUMENT, "names_and_objects is NULL");
    assert_null(ed_checkpoint_of(pairs, INT64_MAX - 1));
    failed_with(ED_OUT_OF_RANGE, "objects");
    assert_null(ed_checkpoint("a", v, NULL, v));
    failed_with(ED_INVALID_ARGUMENT, "the name of object 1 is NULL");
    assert_null(ed_checkpoint("a", NULL));
    failed_with(ED_INVALID_ARGUMENT, "'a' is NULL");
    ed_checkpoint *c = ed_checkpoint_of(NULL, 0); /* of nothing: its counter */
    assert_non_null(ed_checkpoint_save(c, in_folder("nothing")));
    assert_non_null(ed_checkpoint_restore(c, in_folder("nothing-1")));
    assert_null(ed_checkpoint("other", c));
    failed_with(ED_INVALID_ARGUMENT, "a checkpoint can't be saved");

    c = ed_checkpoint("v", v);
    assert_non_null(ed_checkpoint_write(c, in_folder("args")));
    ed_checkpoint_read(c, in_folder("args"), .skip = {NULL, 3}, .only = {NULL, 3});
    assert_fine();
    assert_null(ed_checkpoint_read(c, in_folder("args"), .renames = {NULL, 2}));
    failed_with(ED_INVALID_ARGUMENT, "NULL");
    assert_null(ed_checkpoint_read(c, in_folder("args"), .renames = ED_STRINGS("v", NULL)));
    failed_with(ED_INVALID_ARGUMENT, "NULL");
    ed_tensor *w = floats(2, 5);
    assert_null(ed_checkpoint_read(ed_checkpoint("a", w, "b", v), in_folder("args"),
                                   .partial = true, .renames = ED_STRINGS("a", "v", "b", "v")));
    failed_with(ED_INVALID_ARGUMENT, "duplicate b or v");
    ed_restoration *r = ed_checkpoint_read(c, in_folder("args"), .only = ED_STRINGS());
    assert_fine();
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 0);
    for (int64_t i = -1; i < 2; i++) assert_null(ed_restoration_path(r, (ed_restored)7, i));
    failed_with(ED_INVALID_ARGUMENT, "kind must be");
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
    ed_optimizer *adam = ed_optimizer_adam(), *fresh = ed_optimizer_adam();
    ed_apply_gradients(adam, as, as);
    assert_fine();
    double start = work(), paused;
    ed_checkpoint *c = ed_checkpoint("bag", ed_trackable_new(&bag_class, &a), "adam", adam),
                  *d = ed_checkpoint("bag", ed_trackable_new(&bag_class, &b), "adam", fresh);
    const char *path = in_folder("many");
    assert_non_null(ed_checkpoint_write(c, path));
    ed_restoration *r = ed_checkpoint_read(d, path);
    assert_fine();
    assert_int_equal(ed_restoration_count(r, ED_WAITING), 2 * n);
    assert_non_null(ed_restoration_report(r));
    assert_non_null(ed_checkpoint_write(d, in_folder("many-again")));
    paused = work();
    ed_apply_gradients(fresh, as, bs);
    start += work() - paused;
    assert_true(ed_restoration_assert_consumed(r));
    ed_checkpoint_read(d, path);
    assert_fine();
    const void **pairs = malloc((size_t)n * 2 * sizeof *pairs);
    for (int i = 0; i < n; i++) {
        pairs[2 * i] = names[i];
        pairs[2 * i + 1] = b.objects[i];
    }
    ed_checkpoint *top = ed_checkpoint_of(pairs, 2 * n);
    assert_non_null(ed_checkpoint_write(top, path));
    assert_non_null(ed_checkpoint_read(top, path));
    assert_non_null(ed_checkpoint_read(ed_checkpoint("x", a.objects[0]), path, .partial = true));
    assert_fine();
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
    assert_fine();
    bag *last = &chain[MANY - 1];
    last->numbers[0] = 77;
    assert_non_null(ed_checkpoint_write(c, in_folder("deep")));
    last->numbers[0] = 0;
    ed_restoration *r = ed_checkpoint_read(c, in_folder("deep"));
    assert_fine();
    assert_int_equal(last->numbers[0], 77);
    assert_int_equal(strlen(ed_restoration_path(r, ED_RESTORED, 0)),
                     strlen("chain/n") + (MANY - 1) * strlen("next/"));
    chain_free(chain, MANY);

    /* a number at each: the names of all would take gigabytes */
    chain = chain_new(MANY, true);
    c = ed_checkpoint("chain", ed_trackable_new(&bag_class, chain));
    assert_null(ed_checkpoint_write(c, in_folder("deeper")));
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
    assert_non_null(ed_checkpoint_write(c, in_folder("backward")));
    bags[0].numbers[0] = 0;
    assert_non_null(ed_checkpoint_read(c, in_folder("backward")));
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
            assert_fine();
        }
    assert_non_null(ed_checkpoint_write(ed_checkpoint("a", ed_trackable_new(&bag_class, &a)),
                                        in_folder("dtypes")));
    ed_checkpoint_read(ed_checkpoint("a", ed_trackable_new(&bag_class, &b)), in_folder("dtypes"));
    assert_fine();
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
    assert_non_null(ed_checkpoint_write(c, in_folder("old")));
    ed_assign(v, ed_full(ED_SHAPE(3, 2), 10));
    ed_tensor *value = ed_value(v), *row = ed_slice(v, .begin = ED_SHAPE(1, 0));
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = ed_reduce_sum(ed_square(v));
    ed_checkpoint_manager *m = ed_checkpoint_manager(c, in_folder("background"));
    assert_non_null(ed_manager_save(m, .in_background = true));
    ed_checkpoint_read(c, in_folder("old"));
    assert_fine();
    assert_true(first(v) == 1 && ((const float *)ed_data(v))[1] == 4);
    assert_true(first(value) == 10 && first(row) == 10);
    assert_true(first(ed_gradient(tape, loss, v)) == 20);
    assert_true(ed_manager_wait(m));
    ed_restoration *r = ed_checkpoint_restore(c, ed_manager_latest(m));
    assert_fine();
    assert_true(ed_restoration_assert_consumed(r) && first(v) == 10);
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
    assert_non_null(ed_checkpoint_write(c, in_folder("memory")));
    assert_true(ed_memory_stats().peak_bytes - before.live_bytes < whole / 4);
    ed_memory_reset_peak();
    before = ed_memory_stats();
    {
        ED_SCOPE;
        ed_checkpoint_read(c, in_folder("memory"));
        assert_fine();
        assert_true(ed_memory_stats().peak_bytes - before.live_bytes < whole + (1 << 20));
        assert_true(ed_memory_stats().live_bytes - before.live_bytes < 64 << 10);
    }
    assert_true(llabs(ed_memory_stats().live_bytes - before.live_bytes) < 1024);
    bag_free(&a);
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
    assert_non_null(ed_checkpoint_write(ed_checkpoint("a", object), in_folder("object")));
    assert_non_null(ed_checkpoint_write(ed_checkpoint("a", v), in_folder("value")));
    assert_null(ed_checkpoint_read(ed_checkpoint("a", v), in_folder("object")));
    failed_with(ED_INVALID_ARGUMENT, "missing from the file: a; unexpected in the file: a/n");
    assert_null(ed_checkpoint_read(ed_checkpoint("a", object), in_folder("value")));
    failed_with(ED_INVALID_ARGUMENT, "missing from the file: a/n; unexpected in the file: a ");
    ed_restoration *r =
        ed_checkpoint_read(ed_checkpoint("a", v), in_folder("object"), .partial = true);
    assert_fine();
    assert_false(ed_restoration_assert_existing_objects_matched(r));
    failed_with(ED_FAILED_PRECONDITION, "not restored: a");
    r = ed_checkpoint_read(ed_checkpoint("a", object), in_folder("value"), .partial = true);
    assert_fine();
    assert_true(first(v) == 1 && inner.numbers[0] == 3);
    assert_int_equal(ed_restoration_count(r, ED_RESTORED), 0);
    bag_free(&inner);
}

/* ---- Paths ----------------------------------------------------------------------------------- */

static void paths(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = floats(2, 1);
    ed_checkpoint *c = ed_checkpoint("v", v);
    const char *saved = in_folder("%s", "100%n%s%d /größe\n'\"");
    assert_non_null(ed_checkpoint_write(c, saved));
    ed_restoration *r = ed_checkpoint_read(c, saved);
    assert_fine();
    assert_non_null(strstr(ed_restoration_report(r), saved));
    assert_null(ed_checkpoint_read(c, in_folder("%s", "%n%n%n%s")));
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
    assert_true(ed_failed() && ed_checkpoint_save_counter(c) == 0);
    ed_clear_error();
    free(long_path);

    assert_null(ed_checkpoint_read(c, folder_root)); /* a folder: there is no folder.index */
    failed_with(ED_NOT_FOUND, folder_root);
    assert_null(ed_checkpoint_read(c, ""));
    assert_true(ed_failed());
    ed_clear_error();
    assert_null(ed_checkpoint_write(c, ""));
    failed_with(ED_INVALID_ARGUMENT, "prefix must end in a file name, got ''");
    assert_null(ed_checkpoint_save(c, ""));
    failed_with(ED_INVALID_ARGUMENT, "prefix must end in a file name, got ''");
    assert_int_equal(ed_checkpoint_save_counter(c), 0);
    assert_int_equal(mkdir(in_folder("is-folder.index"), 0700), 0);
    assert_null(ed_checkpoint_read(c, in_folder("is-folder")));
    failed_with(ed_error_kind(), "is-folder");
    assert_int_equal(mkfifo(in_folder("fifo.index"), 0600), 0);
    alarm(60);
    assert_null(ed_checkpoint_read(c, in_folder("fifo"))); /* nobody writes: it must not wait */
    failed_with(ed_error_kind(), "fifo");
    assert_null(ed_checkpoint_write(c, "/dev/null/x"));
    failed_with(ed_error_kind(), "/dev/null");
    assert_null(ed_checkpoint_read(c, "/dev/zero"));
    failed_with(ED_NOT_FOUND, "/dev/zero");
    alarm(0);
    if (geteuid()) {
        assert_non_null(ed_checkpoint_write(c, in_folder("secret")));
        chmod(in_folder("secret.index"), 0);
        assert_null(ed_checkpoint_read(c, in_folder("secret")));
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
    assert_non_null(ed_checkpoint_write(c, in_folder("saved_model/variables/variables")));
    ed_assign(v, ed_zeros(ED_SHAPE(2)));
    ed_restoration *r = ed_checkpoint_restore(c, in_folder("saved_model"), .partial = true);
    assert_fine();
    assert_true(first(v) == 1 && ed_restoration_count(r, ED_RESTORED) == 1);
}

/* What is gone or damaged is so called, whatever the program has: the manager goes by that. */
static void damaged_is_not_unfit(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *path = in_folder("gone");
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

#define TEST(f) cmocka_unit_test_teardown(f, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(circles),
        TEST(names_refused),
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
        TEST(objects_for_values),
        TEST(paths),
        TEST(saved_models),
        TEST(damaged_is_not_unfit),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
