#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/promotion.h"
#include "lua/objects.h"
#include "lua/ops.h"
#include "lua/indexing.h"

/* Functions of Eddy that are made of several ops, as functions and as methods of tensors. */

typedef struct parts {
    ed_tensor *x;
    ed_ints sizes; /* one number: so many equal parts */
    ed_concat_options options;
    bool equal;
} parts;

/* A number of parts, or a table of their sizes. */
static bool number_or_sizes(lua_State *L, int at, const maker_field *field, void *to,
                            convert_room *room)
{
    parts *p = to;
    const ed_field sizes = {
        .name = field->name, .type = ED_FIELD_INTS, .offset = offsetof(parts, sizes)};
    p->equal = lua_type(L, at) == LUA_TNUMBER;
    return convert_field(L, at, &sizes, p, room);
}

static const maker_field split_fields[] = {
    {"x", .offset = offsetof(parts, x), .read = maker_operand},
    {"parts", .offset = 0, .read = number_or_sizes},
    ED_CONCAT_OPTIONS(MAKER_OPTION, parts){0},
};

static const parts split_defaults = {.options = ED_COMPLETE(ED_CONCAT_OPTIONS, ed_concat_options)};

static void *make_split(const void *arguments)
{
    const parts *p = arguments;
    return p->equal ? ed_split_with(p->x, p->sizes.values[0], &p->options)
                    : ed_split_sizes_with(p->x, p->sizes, &p->options);
}

typedef struct pair {
    ed_tensor *x, *bias;
} pair;

static const maker_field pair_fields[] = {
    {"x", .offset = offsetof(pair, x), .read = maker_operand},
    {"bias", .offset = offsetof(pair, bias), .read = maker_operand},
    {0},
};

static void *make_biased(const void *arguments)
{
    const pair *p = arguments;
    ed_tensor *both[] = {p->x, p->bias};
    return promotion(ed_op_find("add"), both, 2, NULL) ? ed_bias_add(both[0], both[1]) : NULL;
}

static const maker_field single_field[] = {
    {"x", .offset = offsetof(pair, x), .read = maker_operand},
    {0},
};

static void *make_flat(const void *arguments)
{
    return ed_flatten(((const pair *)arguments)->x);
}

static void *make_zeros_like(const void *arguments)
{
    return ed_zeros_like(((const pair *)arguments)->x);
}

static void *make_ones_like(const void *arguments)
{
    return ed_ones_like(((const pair *)arguments)->x);
}

static void *make_values(const void *arguments)
{
    return ed_slices_values(((const pair *)arguments)->x);
}

static void *make_indices(const void *arguments)
{
    return ed_slices_indices(((const pair *)arguments)->x);
}

typedef struct filled {
    ed_ints shape;
    maker_value value;
    ed_dtype dtype;
} filled;

static const maker_field full_fields[] = {
    {"shape", ED_FIELD_INTS, .offset = offsetof(filled, shape)},
    {"value", .offset = offsetof(filled, value), .read = maker_later},
    {"dtype", ED_FIELD_DTYPE, .offset = offsetof(filled, dtype)},
    {0},
};

static void *make_full(const void *arguments)
{
    const filled *f = arguments;
    return ed_full_with(f->shape, maker_tensor(&f->value, f->dtype), NULL);
}

static const maker makers[] = {
    {"split", HANDLE_LIST, 2, 2, split_fields, sizeof(parts), &split_defaults, make_split},
    {"bias_add", HANDLE_TENSOR, 2, 2, pair_fields, sizeof(pair), NULL, make_biased},
    {"flatten_tensor", HANDLE_TENSOR, 1, 1, single_field, sizeof(pair), NULL, make_flat},
    {"zeros_like", HANDLE_TENSOR, 1, 1, single_field, sizeof(pair), NULL, make_zeros_like},
    {"ones_like", HANDLE_TENSOR, 1, 1, single_field, sizeof(pair), NULL, make_ones_like},
    {"slices_values", HANDLE_TENSOR, 1, 1, single_field, sizeof(pair), NULL, make_values},
    {"slices_indices", HANDLE_TENSOR, 1, 1, single_field, sizeof(pair), NULL, make_indices},
    {0},
};

/* A function only, not a method: its first operand is not a tensor. */
static const maker full[] = {
    {"full", HANDLE_TENSOR, 3, 2, full_fields, sizeof(filled), NULL, make_full},
    {0},
};

/* Whether the value at an index of the stack is a table that has the name. */
static bool has_name(lua_State *L, int at, const char *name)
{
    if (lua_type(L, at) != LUA_TTABLE) return false;
    lua_pushstring(L, name);
    bool has = lua_rawget(L, at) != LUA_TNIL;
    lua_pop(L, 1);
    return has;
}

/* range(limit) begins at 0. */
static int range(lua_State *L)
{
    bool single = lua_type(L, 1) == LUA_TNUMBER && lua_type(L, 2) != LUA_TNUMBER;
    if (single && !has_name(L, 2, "limit")) {
        lua_pushinteger(L, 0);
        lua_insert(L, 1);
    }
    return ops_call(L, ed_op_find("range"));
}

/* ---- Dtypes ---------------------------------------------------------------------------------- */

static ed_dtype check_dtype(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    ed_dtype dtype = convert_dtype(name);
    if (!dtype) handle_fail(L, "'%s' is not a dtype; dtypes are float32, int32, bool ...", name);
    return dtype;
}

/* dtype_size("float32"): bytes of an element. */
static int size_of_dtype(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)ed_dtype_size(check_dtype(L)));
    return 1;
}

static int dtype_is_float(lua_State *L)
{
    lua_pushboolean(L, ed_dtype_is_float(check_dtype(L)));
    return 1;
}

static const luaL_Reg functions[] = {
    {"range", range},
    {"dtype_size", size_of_dtype},
    {"dtype_is_float", dtype_is_float},
    {NULL, NULL},
};

void functions_open(lua_State *L)
{
    maker_open(L, makers);
    maker_open(L, full);
    indexing_open(L);
    arguments_set(L, NULL, functions);
    objects_push_tensor_methods(L);
    maker_open(L, makers);
    indexing_open(L);
    lua_pushnil(L);
    lua_setfield(L, -2, full->name); /* the op's, whose operand comes first */
    lua_pop(L, 1);
}
