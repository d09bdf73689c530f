/*
 * Numbers that TensorFlow drew, drawn again: by its stateless functions, its generators (with the
 * state after each call), its functions after tf.random.set_seed, and Keras' initializers and
 * seeds. Each recorded call is either replayed to the last bit or of a kind that stands in `others`
 * with its number of calls.
 *
 * EDDY_DATA names the folder with the recordings: of each a .json with the calls and a .npz with
 * their results, one flat array for each dtype.
 */
#include "tests/initializers.h"
#include "io/io.h"
#include "nn/nn.h"
#include "ops/kernels/seeds.h"
#include "ops/generator.h"
#include "tests/folders.h"
#include "tests/json.h"
#include <math.h>
#include <stdlib.h>

/* What Eddy has no function for. */
static const struct {
    const char *recording, *kind;
    int calls;
} others[] = {
    {"stateless", "index_shuffle", 4},
    {"stateless", "stateless_categorical", 1},
    {"stateless", "stateless_gamma", 1},
    {"stateless", "stateless_poisson", 1},
    {"global_seed", "categorical", 1},
    {"global_seed", "dataset_shuffle", 3},
    {"global_seed", "gamma", 1},
    {"global_seed", "in_function", 1},
    {"keras", "Identity", 1},
    {"keras", "Orthogonal", 2},
    {"keras", "VarianceScaling", 2}, /* those that are not one of the named initializers */
    {"keras", "beta", 1},
    {"keras", "categorical", 1},
    {"keras", "gamma", 1},
    {"keras", "set_random_seed", 1},
    {"keras", "shuffle", 1}, /* by sorting uniform numbers, unlike TensorFlow's own */
};
enum { OTHERS = sizeof others / sizeof *others };

/* ---- Recordings ------------------------------------------------------------------------------ */

typedef struct recording {
    const char *name;
    json *root;
    ed_archive *arrays;
    int replayed, left[OTHERS];
} recording;

static recording open_recording(const char *name)
{
    recording r = {.name = name};
    r.root = json_read_file(in_data("tf/made/random/%s.json", name));
    r.arrays = ed_archive_open(in_data("tf/made/random/%s.npz", name));
    assert_fine();
    return r;
}

/* All calls were met, and what is left is what the table says. */
static void close_recording(recording *r, int replayed)
{
    assert_fine();
    assert_int_equal(r->replayed, replayed);
    for (int i = 0; i < OTHERS; i++)
        if (r->left[i] != (strcmp(others[i].recording, r->name) ? 0 : others[i].calls))
            fail_msg("%s: %d calls of %s", r->name, r->left[i], others[i].kind);
    json_free(r->root);
}

static void leave(recording *r, const char *kind)
{
    int i = 0;
    while (i < OTHERS && (strcmp(others[i].recording, r->name) || strcmp(others[i].kind, kind)))
        i++;
    if (i == OTHERS) fail_msg("%s: a call of %s", r->name, kind);
    r->left[i]++;
}

static const json *member(const json *j, const char *key)
{
    const json *found = json_get(j, key);
    if (!found) fail_msg("no %s", key);
    return found;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

typedef struct dims {
    int64_t values[ED_MAX_RANK], count;
} dims;

static dims shape_of(const json *list)
{
    dims s = {.count = json_count(list)};
    assert_true(s.count <= ED_MAX_RANK);
    for (int64_t i = 0; i < s.count; i++) s.values[i] = json_int(json_at(list, i));
    return s;
}

static ed_dtype dtype_named(const char *name)
{
    for (ed_dtype d = 1; d < ED_DTYPE_COUNT; d++)
        if (is(ed_dtype_name(d), name)) return d;
    fail_msg("no dtype is called %s", name);
    return ED_DTYPE_NONE;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* Normals in float64 come from the C library at hand, which need not be TensorFlow's. */
static bool of_library(const json *call, const char *dtype)
{
    const json *name = json_get(call, "name");
    const char *law = json_text(name ? name : member(call, "op"));
    return is(dtype, "float64") && (strstr(law, "normal") || strstr(law, "Normal"));
}

static bool near(const double *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fabs(a[i] - b[i]) > 2 * (nextafter(fabs(b[i]), INFINITY) - fabs(b[i]))) return false;
    return true;
}

/* Result i of a call, `out` or `state`, against y. */
static void check_member(recording *r, const json *call, const char *key, int64_t i, ed_tensor *y)
{
    assert_fine();
    const json *out = json_at(member(call, key), i);
    const dims s = shape_of(member(out, "shape"));
    const ed_ints mine = ed_shape(y);
    const char *name = json_text(member(out, "dtype"));
    ed_tensor *all = ed_archive_get(r->arrays, json_text(member(out, "array")));
    assert_fine();
    assert_string_equal(ed_dtype_name(ed_dtype_of(y)), name);
    assert_int_equal(mine.count, s.count);
    if (s.count) assert_memory_equal(mine.values, s.values, (size_t)s.count * sizeof *s.values);

    const int64_t at = json_int(member(out, "at")), n = ed_size(y);
    const size_t size = ed_dtype_size(ed_dtype_of(y));
    assert_true(at >= 0 && at + n <= ed_size(all) && ed_dtype_size(ed_dtype_of(all)) == size);
    const char *expected = (const char *)ed_data(all) + (size_t)at * size, *got = ed_data(y);
    if (!memcmp(got, expected, (size_t)n * size)) return;
    if (of_library(call, name) && near(ed_data(y), (const void *)expected, n)) return;
    fail_msg("%s: %s differs at %s[%ld]", r->name, json_text(member(call, "op")), name, (long)at);
}

static void check(recording *r, const json *call, int64_t i, ed_tensor *y)
{
    check_member(r, call, "out", i, y);
}

/* ---- Drawing --------------------------------------------------------------------------------- */

static void set_generator(ed_generator *generator, philox p)
{
    int64_t words[3];
    uint64_t state[3];
    philox_to_state(&p, words);
    memcpy(state, words, sizeof state);
    assert_true(ed_generator_set_state(generator, state));
}

static ed_generator *generator_in(philox p)
{
    ed_generator *generator = ed_generator_from_seed(0);
    set_generator(generator, p);
    return generator;
}

static ed_generator *generator_of_pair(int64_t seed0, int64_t seed1)
{
    return generator_in(philox_from_stateless(seed0, seed1));
}

/* The generator's state, and moving on as n elements do. */
static philox take(ed_generator *generator, int64_t n)
{
    uint64_t state[3];
    ed_generator_state(generator, state);
    const philox p = random_philox(state);
    philox after = p;
    philox_skip_elements(&after, (uint64_t)n);
    set_generator(generator, after);
    return p;
}

/* Integers over their full range. Ops draw no unsigned ones; the words are the same. */
static ed_tensor *full_range(ed_dtype dtype, ed_ints shape, ed_generator *generator)
{
    if (dtype == ED_INT32)
        return ed_random_uniform(shape, .dtype = dtype, .generator = generator, .low = -0x1p31,
                                 .high = 0x1p31);
    if (dtype == ED_INT64)
        return ed_random_uniform(shape, .dtype = dtype, .generator = generator, .low = -0x1p63,
                                 .high = 0x1p63);
    uint64_t words[8];
    assert_true(shape.count == 1 && shape.values[0] <= 8);
    const philox p = take(generator, shape.values[0]);
    if (dtype == ED_UINT32)
        philox_bits_32(&p, shape.values[0], words);
    else
        philox_bits_64(&p, shape.values[0], words);
    return ed_constant_of(dtype, words, shape);
}

static void put_number(const json *arguments, const char *key, double *to)
{
    const json *j = json_get(arguments, key);
    if (j) *to = json_number(j);
}

/* A draw of the law "uniform", "normal" or "truncated_normal"; NULL: it is none of them. */
static ed_tensor *draw(const char *law, const json *arguments, ed_generator *generator,
                       ed_dtype dtype)
{
    const bool uniform = is(law, "uniform"), normal = is(law, "normal");
    if (!uniform && !normal && !is(law, "truncated_normal")) return NULL;
    const json *of = json_get(arguments, "dtype"), *low = json_get(arguments, "minval");
    const dims s = shape_of(member(arguments, "shape"));
    const ed_ints size = {s.values, s.count};
    if (of) dtype = dtype_named(json_text(of));
    if (low && json_kind_of(low) == JSON_NULL) return full_range(dtype, size, generator);
    double minval = 0, maxval = 1, mean = 0, stddev = 1;
    put_number(arguments, "minval", &minval);
    put_number(arguments, "maxval", &maxval);
    put_number(arguments, "mean", &mean);
    put_number(arguments, "stddev", &stddev);
    ed_tensor *y = uniform ? ed_random_uniform(size, .dtype = dtype, .generator = generator,
                                               .low = minval, .high = maxval)
                   : normal
                       ? ed_random_normal(size, .dtype = dtype, .generator = generator,
                                          .mean = mean, .stddev = stddev)
                       : ed_random_truncated_normal(size, .dtype = dtype, .generator = generator,
                                                    .mean = mean, .stddev = stddev);
    assert_non_null(y);
    return y;
}

static ed_tensor *counting(int64_t n, ed_dtype dtype)
{
    return ed_range(0, n, .dtype = dtype);
}

/* ---- Stateless functions --------------------------------------------------------------------- */

static void replay_stateless(recording *r, const json *call)
{
    const char *op = json_text(member(call, "op")), *prefix = "stateless_";
    const char *law = strncmp(op, prefix, strlen(prefix)) ? op : op + strlen(prefix);
    const json *seed = member(call, "seed"), *algorithm = json_get(call, "alg");
    assert_true(!algorithm || is(json_text(algorithm), "philox"));
    assert_int_equal(json_count(seed), 2);
    ed_generator *generator =
        generator_of_pair(json_int(json_at(seed, 0)), json_int(json_at(seed, 1)));

    ed_tensor *y = draw(law, call, generator, ED_FLOAT32);
    if (!y && is(op, "stateless_shuffle")) {
        ed_tensor *x = counting(json_int(member(call, "n")), ED_INT32);
        y = ed_random_shuffle(x, .generator = generator);
    } else if (!y && is(op, "split")) {
        y = full_range(ED_INT64, ED_SHAPE(json_int(member(call, "num")), 2), generator);
    } else if (!y && is(op, "fold_in")) {
        const int32_t word = (int32_t)ed_item(full_range(ED_INT32, ED_SHAPE(), generator));
        const int32_t folded[2] = {word, (int32_t)json_int(member(call, "data"))};
        y = ed_constant_of(ED_INT32, folded, ED_SHAPE(2));
    } else if (!y) {
        leave(r, op);
        return;
    }
    check(r, call, 0, y);
    r->replayed++;
}

static void stateless(void **state)
{
    (void)state;
    ED_SCOPE;
    recording r = open_recording("stateless");
    const json *calls = member(r.root, "calls");
    for (int64_t i = 0; i < json_count(calls); i++) {
        ED_SCOPE;
        replay_stateless(&r, json_at(calls, i));
    }
    close_recording(&r, 161);
}

/* ---- Generators ------------------------------------------------------------------------------ */

/* Decimal digits as a number below 2^128, low half first. */
static void put_digits(const char *digits, int64_t halves[2])
{
    unsigned __int128 x = 0;
    for (; *digits; digits++) {
        assert_true(*digits >= '0' && *digits <= '9');
        x = 10 * x + (unsigned)(*digits - '0');
    }
    halves[0] = (int64_t)(uint64_t)x;
    halves[1] = (int64_t)(uint64_t)(x >> 64);
}

/* The generator that a run begins with: [way, arguments]. */
static ed_generator *new_generator(const json *made)
{
    const char *way = json_text(json_at(made, 0));
    const json *from = json_at(made, 1);
    int64_t state[3] = {0};
    if (is(way, "from_key_counter")) {
        state[2] = json_int(from);
        for (int i = 0; i < 2; i++) state[i] = json_int(json_at(json_at(made, 2), i));
    } else if (json_kind_of(from) == JSON_ARRAY) { /* from_state, or a seed that is aligned right */
        int64_t n = json_count(from);
        assert_true(n <= 3);
        for (int64_t i = 0; i < n; i++) state[3 - n + i] = json_int(json_at(from, i));
    } else if (json_kind_of(from) == JSON_TEXT) {
        put_digits(json_text(from), state);
    } else {
        return ed_generator_from_seed(json_unsigned(from));
    }
    return generator_in(philox_from_state(state));
}

static void check_state(recording *r, const json *call, ed_generator *generator)
{
    uint64_t state[3];
    ed_generator_state(generator, state);
    check_member(r, call, "state", 0, ed_constant_of(ED_INT64, state, ED_SHAPE(3)));
}

/* Generators that are split off have a word of 64 bits as their key and count from 0. */
static void replay_split(recording *r, const json *call, ed_generator *generator, bool draws)
{
    const int64_t count = json_int(member(call, "count"));
    const int64_t *keys = ed_data(full_range(ED_INT64, ED_SHAPE(count), generator));
    assert_int_equal(json_count(member(call, "out")), count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t state[3] = {0, 0, keys[i]};
        ed_generator *made = generator_in(philox_from_state(state));
        check(r, call, i,
              draws ? ed_random_normal(ED_SHAPE(3), .generator = made)
                    : ed_constant_of(ED_INT64, state, ED_SHAPE(3)));
    }
}

static void replay_generator(recording *r, const json *call, ed_generator *generator)
{
    const char *op = json_text(member(call, "op"));
    ed_tensor *y = draw(op, call, generator, ED_FLOAT32);
    if (!y && is(op, "uniform_full_int")) {
        const dims s = shape_of(member(call, "shape"));
        const ed_dtype dtype = dtype_named(json_text(member(call, "dtype")));
        y = full_range(dtype, (ed_ints){s.values, s.count}, generator);
    } else if (!y && is(op, "make_seeds")) {
        ed_ints size = ED_SHAPE(1, json_int(member(call, "count")));
        y = ed_concat(
            ed_list_of(full_range(ED_INT64, size, generator), ed_zeros(size, .dtype = ED_INT64)));
    } else if (is(op, "split") || is(op, "split_then_normal")) {
        replay_split(r, call, generator, is(op, "split_then_normal"));
    } else if (is(op, "skip")) {
        take(generator, json_int(member(call, "delta")));
    } else if (is(op, "reset_from_seed")) {
        uint64_t seed = json_unsigned(member(call, "seed"));
        assert_true(ed_generator_set_state(generator, (const uint64_t[3]){seed, 0, 0}));
    } else if (!y) {
        leave(r, op);
        return;
    }
    if (y) check(r, call, 0, y);
    check_state(r, call, generator);
    r->replayed++;
}

static void generators(void **state)
{
    (void)state;
    ED_SCOPE;
    recording r = open_recording("generator");
    const json *runs = member(r.root, "runs");
    for (int64_t i = 0; i < json_count(runs); i++) {
        ED_SCOPE;
        const json *run = json_at(runs, i), *calls = member(run, "calls");
        ed_generator *generator = new_generator(member(run, "new"));
        check_state(&r, run, generator);
        for (int64_t j = 0; j < json_count(calls); j++)
            replay_generator(&r, json_at(calls, j), generator);
    }
    assert_int_equal(json_count(runs), 7);
    close_recording(&r, 39);
}

/* ---- After tf.random.set_seed ---------------------------------------------------------------- */

/* An op with a seed of its own goes on where its last call of that seed ended. */
typedef struct seeded {
    int64_t global;
    int count;
    struct {
        const char *op;
        int64_t seed;
        ed_generator *generator;
    } ops[8];
} seeded;

static ed_generator *generator_of_op(seeded *s, const char *op, int64_t seed)
{
    for (int i = 0; i < s->count; i++)
        if (is(s->ops[i].op, op) && s->ops[i].seed == seed) return s->ops[i].generator;
    assert_true(s->count < 8);
    ed_generator *generator = generator_in(philox_from_op_seeds(&s->global, &seed));
    s->ops[s->count].op = op;
    s->ops[s->count].seed = seed;
    s->ops[s->count++].generator = generator;
    return generator;
}

/* tf.random.shuffle uses up the words of n - 1 swaps, no more; a generator moves on as for n
 * numbers. */
static ed_tensor *shuffle_seeded(int64_t n, ed_generator *generator)
{
    ed_tensor *x = counting(n, ED_INT32);
    if (!generator) return ed_random_shuffle(x);
    philox p = take(generator, 0);
    ed_tensor *y = ed_random_shuffle(x, .generator = generator);
    philox_skip(&p, (uint64_t)(n + 2) / 4);
    set_generator(generator, p);
    return y;
}

static void replay_seeded(recording *r, const json *call, seeded *s)
{
    const char *op = json_text(member(call, "op"));
    const json *seed = json_get(call, "seed");
    if (is(op, "set_seed")) {
        *s = (seeded){.global = json_int(seed)};
        ed_set_seed(s->global);
        r->replayed++;
        return;
    }
    ed_generator *generator = seed ? generator_of_op(s, op, json_int(seed)) : NULL;
    ed_tensor *y = draw(op, call, generator, ED_FLOAT32);
    if (!y && is(op, "shuffle")) {
        y = shuffle_seeded(json_int(member(call, "n")), generator);
    } else if (!y && is(op, "dropout")) {
        y = ed_dropout(ed_ones(ED_SHAPE(json_int(member(call, "n")))),
                       json_number(member(call, "rate")));
    } else if (!y) {
        leave(r, op);
        return;
    }
    check(r, call, 0, y);
    r->replayed++;
}

static void global_seeds(void **state)
{
    (void)state;
    ED_SCOPE;
    recording r = open_recording("global_seed");
    const json *runs = member(r.root, "runs");
    for (int64_t i = 0; i < json_count(runs); i++) {
        ED_SCOPE;
        const json *calls = member(json_at(runs, i), "calls");
        seeded s = {0};
        for (int64_t j = 0; j < json_count(calls); j++) replay_seeded(&r, json_at(calls, j), &s);
    }
    assert_int_equal(json_count(runs), 6);
    close_recording(&r, 31);
}

/* ---- Keras ----------------------------------------------------------------------------------- */

/* The named initializers; NULL: it is none of them. */
static ed_tensor *initialize(const char *name, const json *call, ed_generator *generator)
{
    static const struct {
        const char *name;
        const char *eddys;
    } known[] = {
        {"GlorotUniform", "glorot_uniform"}, {"GlorotNormal", "glorot_normal"},
        {"HeUniform", "he_uniform"},         {"HeNormal", "he_normal"},
        {"LecunUniform", "lecun_uniform"},   {"LecunNormal", "lecun_normal"},
        {"RandomUniform", "random_uniform"}, {"RandomNormal", "random_normal"},
        {"VarianceScaling", "lecun_normal"}, {"TruncatedNormal", "truncated_normal"},
    };
    const dims s = shape_of(member(call, "shape"));
    const ed_ints size = {s.values, s.count};
    const json *of = json_get(call, "dtype"), *arguments = member(call, "args");
    const ed_dtype dtype = of ? dtype_named(json_text(of)) : ED_FLOAT32;
    if (is(name, "RandomUniform") && json_get(arguments, "minval"))
        return ed_random_uniform(size, .generator = generator,
                                 .low = json_number(member(arguments, "minval")),
                                 .high = json_number(member(arguments, "maxval")));
    if (json_count(arguments) > 1) return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is(known[i].name, name))
            return ed_initialize(initializer_named(known[i].eddys, generator), size, dtype);
    return NULL;
}

/* keras.random: of a shape, or of an array that is given. */
static ed_tensor *keras_random(const char *name, const json *arguments, ed_generator *generator)
{
    if (is(name, "randint")) return draw("uniform", arguments, generator, ED_INT32);
    if (is(name, "dropout"))
        return ed_dropout(ed_ones(ED_SHAPE(12)), json_number(member(arguments, "rate")),
                          .generator = generator);
    return draw(name, arguments, generator, ED_FLOAT32);
}

static ed_tensor *pair(int64_t a, int64_t b)
{
    return ed_constant_of(ED_INT64, (const int64_t[]){a, b}, ED_SHAPE(2));
}

/* A generator of seeds counts its draws in the second number. */
static void replay_seed_generator(recording *r, const json *call)
{
    const int64_t seed = json_int(member(call, "seed")), draws = json_int(member(call, "draws"));
    assert_int_equal(json_count(member(call, "out")), 2 * draws + 1);
    for (int64_t i = 0; i < draws; i++) {
        check(r, call, 2 * i, pair(seed, i));
        check(r, call, 2 * i + 1,
              ed_random_uniform(ED_SHAPE(3), .generator = generator_of_pair(seed, i)));
    }
    check(r, call, 2 * draws, pair(seed, draws));
}

static void replay_dropout_layer(recording *r, const json *call)
{
    const int64_t seed = json_int(member(call, "seed")), n = json_int(member(call, "n"));
    ed_tensor *x = ed_ones(ED_SHAPE(n));
    for (int64_t i = 0; i < 2; i++) {
        ed_layer *layer = ed_layer_dropout(json_number(member(call, "rate")),
                                           .generator = generator_of_pair(seed, i));
        check(r, call, i, ed_forward(layer, x, .training = true));
    }
    check(r, call, 2, pair(seed, 2));
}

static void replay_keras(recording *r, const json *call)
{
    const char *op = json_text(member(call, "op"));
    if (is(op, "seed_generator") || is(op, "dropout_layer")) {
        (is(op, "seed_generator") ? replay_seed_generator : replay_dropout_layer)(r, call);
        r->replayed++;
        return;
    }
    const json *name = json_get(call, "name"), *arguments = json_get(call, "args");
    const json *seed = name ? json_get(arguments, "seed") : NULL;
    ed_tensor *y = NULL;
    if (seed) {
        ed_generator *generator = generator_of_pair(json_int(seed), 0);
        y = is(op, "initializer") ? initialize(json_text(name), call, generator)
                                  : keras_random(json_text(name), arguments, generator);
    }
    if (!y) {
        leave(r, name ? json_text(name) : op);
        return;
    }
    check(r, call, 0, y);
    r->replayed++;
}

static void keras(void **state)
{
    (void)state;
    ED_SCOPE;
    recording r = open_recording("keras");
    const json *calls = member(r.root, "calls");
    for (int64_t i = 0; i < json_count(calls); i++) {
        ED_SCOPE;
        replay_keras(&r, json_at(calls, i));
    }
    close_recording(&r, 29);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stateless),
        cmocka_unit_test(generators),
        cmocka_unit_test(global_seeds),
        cmocka_unit_test(keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
