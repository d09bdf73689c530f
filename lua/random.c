#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/objects.h"
#include <string.h>

/*
 * Random numbers in Lua.
 *
 *     ed.random.normal{3, 4, stddev = 0.1, generator = g}     ed.random.uniform({3}, {high = 2})
 *     ed.random.shuffle(x)    ed.dropout(x, 0.5)
 *     local g = ed.generator(42); g.state = {low, high, key}
 */

/* ---- Draws ----------------------------------------------------------------------------------- */

typedef struct uniform {
    ed_ints shape;
    ed_random_uniform_options options;
} uniform;

typedef struct normal {
    ed_ints shape;
    ed_random_normal_options options;
} normal;

typedef struct drawn {
    ed_tensor *x;
    double rate;
    ed_generator_options options;
} drawn;

static const maker_field uniform_fields[] = {
    {"shape", ED_FIELD_INTS, offsetof(uniform, shape)},
    ED_RANDOM_UNIFORM_OPTIONS(MAKER_OPTION, uniform){0},
};

static const maker_field normal_fields[] = {
    {"shape", ED_FIELD_INTS, offsetof(normal, shape)},
    ED_RANDOM_NORMAL_OPTIONS(MAKER_OPTION, normal){0},
};

static const maker_field shuffle_fields[] = {
    {"x", .offset = offsetof(drawn, x), .read = maker_operand},
    ED_GENERATOR_OPTIONS(MAKER_OPTION, drawn){0},
};

static const maker_field dropout_fields[] = {
    {"x", .offset = offsetof(drawn, x), .read = maker_floats},
    {"rate", ED_FIELD_FLOAT, offsetof(drawn, rate)},
    ED_GENERATOR_OPTIONS(MAKER_OPTION, drawn){0},
};

static void *make_uniform(const void *arguments)
{
    const uniform *a = arguments;
    return ed_random_uniform_with(a->shape, &a->options);
}

static void *make_normal(const void *arguments)
{
    const normal *a = arguments;
    return ed_random_normal_with(a->shape, &a->options);
}

static void *make_truncated(const void *arguments)
{
    const normal *a = arguments;
    return ed_random_truncated_normal_with(a->shape, &a->options);
}

static void *make_shuffled(const void *arguments)
{
    const drawn *a = arguments;
    return ed_random_shuffle_with(a->x, &a->options);
}

static void *make_dropped(const void *arguments)
{
    const drawn *a = arguments;
    return ed_dropout_with(a->x, a->rate, &a->options);
}

static const uniform uniform_defaults = {
    .options = ED_COMPLETE(ED_RANDOM_UNIFORM_OPTIONS, ed_random_uniform_options)};
static const normal normal_defaults = {
    .options = ED_COMPLETE(ED_RANDOM_NORMAL_OPTIONS, ed_random_normal_options)};
static const drawn drawn_defaults = {.options =
                                         ED_COMPLETE(ED_GENERATOR_OPTIONS, ed_generator_options)};

static const maker draws[] = {
    {"uniform", HANDLE_TENSOR, 1, 1, uniform_fields, sizeof(uniform), &uniform_defaults,
     make_uniform},
    {"normal", HANDLE_TENSOR, 1, 1, normal_fields, sizeof(normal), &normal_defaults, make_normal},
    {"truncated_normal", HANDLE_TENSOR, 1, 1, normal_fields, sizeof(normal), &normal_defaults,
     make_truncated},
    {"shuffle", HANDLE_TENSOR, 1, 1, shuffle_fields, sizeof(drawn), &drawn_defaults, make_shuffled},
    {0},
};

/* ---- Generators ------------------------------------------------------------------------------ */

typedef struct seed {
    int64_t seed;
} seed;

static const maker_field seed_fields[] = {{"seed", ED_FIELD_INT, .offset = offsetof(seed, seed)},
                                          {0}};

/* As TensorFlow's from_seed, where an integer of Python fills all three words: the higher ones of a
 * negative one are -1. */
static void *make_generator(const void *arguments)
{
    const int64_t number = ((const seed *)arguments)->seed;
    const uint64_t low = (uint64_t)number, all_ones = (uint64_t)-1;
    ed_generator *g = ed_generator_from_seed(low);
    if (g && number < 0) ed_generator_set_state(g, (uint64_t[]){low, all_ones, all_ones});
    return g;
}

static const maker makers[] = {
    {"dropout", HANDLE_TENSOR, 2, 2, dropout_fields, sizeof(drawn), &drawn_defaults, make_dropped},
    {"generator", HANDLE_GENERATOR, 1, 1, seed_fields, sizeof(seed), NULL, make_generator},
    {0},
};

static int default_generator(lua_State *L)
{
    handle *h = handle_new(L, HANDLE_GENERATOR);
    binding b = binding_open(L);
    return binding_finish(L, &b, h, ed_default_generator());
}

enum { STATE_WORDS = 3 };

static bool is_state(lua_State *L)
{
    return lua_type(L, 2) == LUA_TSTRING && !strcmp(lua_tostring(L, 2), "state");
}

/* g.state: the counter's two words and the key, as whole numbers of 64 bits. */
static int get_generator_field(lua_State *L)
{
    const ed_generator *generator = handle_check(L, 1, HANDLE_GENERATOR);
    if (objects_method(L)) return 1;
    if (!is_state(L)) return objects_no_field(L);
    uint64_t state[STATE_WORDS];
    ed_generator_state(generator, state);
    if (ed_failed()) return handle_raise(L);
    lua_createtable(L, STATE_WORDS, 0);
    for (int i = 0; i < STATE_WORDS; i++) {
        lua_pushinteger(L, (lua_Integer)state[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int set_generator_field(lua_State *L)
{
    ed_generator *generator = handle_check(L, 1, HANDLE_GENERATOR);
    if (!is_state(L)) return handle_fail(L, "of a generator, state alone can be set");
    luaL_checktype(L, 3, LUA_TTABLE);
    uint64_t state[STATE_WORDS];
    for (int i = 0; i < STATE_WORDS; i++) {
        int whole, type = lua_rawgeti(L, 3, i + 1);
        state[i] = (uint64_t)lua_tointegerx(L, -1, &whole);
        if (!whole || type != LUA_TNUMBER)
            return handle_fail(L, "a state is a table of three integers");
    }
    return ed_generator_set_state(generator, state) ? 0 : handle_raise(L);
}

static const luaL_Reg methods[] = {{NULL, NULL}};
static const luaL_Reg metamethods[] = {{"__newindex", set_generator_field}, {NULL, NULL}};

void random_open(lua_State *L)
{
    maker_open(L, makers);
    arguments_push(L, "default_generator", default_generator);
    lua_setfield(L, -2, "default_generator");
    lua_createtable(L, 0, 4);
    maker_open(L, draws);
    lua_setfield(L, -2, "random");
    objects_methods(L, HANDLE_GENERATOR, methods, metamethods, get_generator_field);
}
