#include "data/data.h"
#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/objects.h"

/*
 * Datasets in Lua.
 *
 *     local train = ed.dataset(x, y, {batch = 32, shuffle = true})     ed.mnist("train", {dir = })
 *     for x, y in train:batches() do ... end     ed.dataset({image, table}, {digit, parity})
 *     for x, y in train:map(function(x, y) return x / 255, y end):batches() do ... end
 */

typedef struct dataset {
    ed_list *x, *y;
    ed_dataset_options options;
} dataset;

/* A tensor or what becomes one, or a table of tensors: of several inputs or outputs. */
static bool read_data(lua_State *L, int at, const maker_field *field, void *to, convert_room *room)
{
    (void)field;
    bool list = lua_type(L, at) == LUA_TTABLE;
    if (list) {
        lua_rawgeti(L, at, 1);
        list = handle_at(L, -1, HANDLE_TENSOR) != NULL;
        lua_pop(L, 1);
    }
    if (list) return (*(ed_list **)to = convert_list(L, at)) != NULL;
    ed_tensor *t = NULL;
    return maker_operand(L, at, field, &t, room) && (*(ed_list **)to = ed_list_of_one(t));
}

static const maker_field dataset_fields[] = {
    {"x", .offset = offsetof(dataset, x), .read = read_data},
    {"y", .offset = offsetof(dataset, y), .read = read_data},
    ED_DATASET_OPTIONS(MAKER_OPTION, dataset){0},
};

static void *make_dataset(const void *arguments)
{
    const dataset *d = arguments;
    return ed_dataset_from_lists_with(d->x, d->y, &d->options);
}

typedef struct mnist {
    const char *split;
    ed_dataset_mnist_options options;
} mnist;

static const maker_field mnist_fields[] = {
    {"split", ED_FIELD_STRING, .offset = offsetof(mnist, split)},
    ED_DATASET_MNIST_OPTIONS(MAKER_OPTION, mnist){0},
};

static void *make_mnist(const void *arguments)
{
    const mnist *m = arguments;
    if (!m->options.dir)
        return ed_fail(ED_INVALID_ARGUMENT, "mnist: dir, the folder of the files, is not given");
    return ed_dataset_mnist_with(m->split, &m->options);
}

static const dataset dataset_defaults = {.options =
                                             ED_COMPLETE(ED_DATASET_OPTIONS, ed_dataset_options)};
static const mnist mnist_defaults = {
    .options = ED_COMPLETE(ED_DATASET_MNIST_OPTIONS, ed_dataset_mnist_options)};

static const maker makers[] = {
    {"dataset", HANDLE_DATASET, 2, 2, dataset_fields, sizeof(dataset), &dataset_defaults,
     make_dataset},
    {"mnist", HANDLE_DATASET, 1, 1, mnist_fields, sizeof(mnist), &mnist_defaults, make_mnist},
    {0},
};

/* ---- Batches --------------------------------------------------------------------------------- */

/* Replaces the userdata of a list at `at` by a table of its tensors, or by its only one. */
static void unpack(lua_State *L, int at, ed_list *list)
{
    const int64_t n = ed_list_size(list);
    if (n > 1) lua_createtable(L, (int)n, 0);
    for (int64_t i = 0; i < n; i++) {
        handle *h = handle_new(L, HANDLE_TENSOR);
        handle_put(h, ed_list_get(list, i));
        if (n > 1) lua_rawseti(L, -2, i + 1);
    }
    lua_replace(L, at);
}

/* next(): x, y of the next batch; nil at the end of an epoch. Several x or y are a table. */
static int next(lua_State *L)
{
    ed_dataset *set = handle_check(L, 1, HANDLE_DATASET);
    lua_settop(L, 1);
    handle *hx = handle_new(L, HANDLE_LIST), *hy = handle_new(L, HANDLE_LIST);
    ed_list *x, *y;
    binding b = binding_open(L);
    bool more = ed_dataset_next_lists(set, &x, &y);
    if (more) {
        handle_put(hx, x);
        handle_put(hy, y);
    }
    binding_close(&b);
    if (!more && ed_failed()) return handle_raise(L);
    if (!more) return lua_pushnil(L), 1;
    unpack(L, 2, x);
    unpack(L, 3, y);
    return 2;
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/*
 * A loop begins an epoch, or continues the epoch that a checkpoint was restored to. When the loop
 * is left, by break or an error, the epoch ends; so a checkpoint that is saved in the loop or after
 * it has the same position as in a program that is not stopped. All loops over a dataset share its
 * position: of nested loops the inner one takes the batches, and the outer one fails.
 */
static const char loops_key; /* dataset -> the number of its last loop; weak */

typedef struct loop {
    lua_Integer number;
} loop;

/* Pushes the dataset of the loop at 1, its user value; returns whether the loop is its last. */
static bool push_set(lua_State *L)
{
    const loop *l = luaL_checkudata(L, 1, "eddy.loop");
    lua_settop(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &loops_key);
    lua_getiuservalue(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_rawget(L, 2);
    const bool last = lua_tointeger(L, -1) == l->number;
    lua_pop(L, 1);
    lua_replace(L, 2);
    return last;
}

/* The next values of the loop at 1, as of next(). */
static int next_of_loop(lua_State *L)
{
    if (!push_set(L))
        return handle_fail(L, "batches: a loop over this dataset inside this loop "
                              "took its batches; create a dataset for each loop");
    lua_remove(L, 1);
    return next(L);
}

/* __close: the loop is over. */
static int end_loop(lua_State *L)
{
    ed_dataset *set = push_set(L) ? handle_at(L, 2, HANDLE_DATASET) : NULL;
    return !set || ed_dataset_begin(set) ? 0 : handle_raise(L);
}

/* for x, y in set:batches() */
static int batches(lua_State *L)
{
    ed_dataset *set = handle_check(L, 1, HANDLE_DATASET);
    lua_settop(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &loops_key);
    lua_pushvalue(L, 1);
    lua_rawget(L, 2);
    const lua_Integer number = lua_tointeger(L, 3) + 1;
    lua_pushvalue(L, 1);
    lua_pushinteger(L, number);
    lua_rawset(L, 2);
    if (!ed_dataset_begin(set)) return handle_raise(L);
    lua_pushcfunction(L, next_of_loop);
    loop *l = lua_newuserdatauv(L, sizeof *l, 1);
    l->number = number;
    luaL_setmetatable(L, "eddy.loop");
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushnil(L);
    lua_pushvalue(L, -2);
    return 4;
}

static void open_loops(lua_State *L)
{
    luaL_newmetatable(L, "eddy.loop");
    lua_pushcfunction(L, end_loop);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
    handle_new_weak(L, "k", &loops_key);
}

/* ---- Mapped datasets ------------------------------------------------------------------------- */

/* set:map(f): a table {source = set, f = f}, whose batches are f(x, y), computed when they are
 * asked for. A checkpoint saves the dataset in it, as in any table. */
static int map(lua_State *L)
{
    luaL_checkany(L, 2);
    if (!lua_isfunction(L, 2) && !luaL_getmetafield(L, 2, "__call"))
        luaL_typeerror(L, 2, "function");
    lua_settop(L, 2);
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "source");
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "f");
    luaL_setmetatable(L, "eddy.mapped");
    return 1;
}

/* The mapped dataset at 1: pushes its source's method and the source. */
static void push_source_method(lua_State *L, const char *name)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_getfield(L, 1, "source");
    lua_getfield(L, 2, name);
    lua_insert(L, 2);
}

/* Calls f on the batch above the first value of the stack, the mapped dataset; or returns the
 * end. */
static int mapped(lua_State *L)
{
    if (lua_isnoneornil(L, 2)) return lua_pushnil(L), 1;
    lua_getfield(L, 1, "f");
    lua_insert(L, 2);
    lua_call(L, lua_gettop(L) - 2, LUA_MULTRET);
    if (lua_isnoneornil(L, 2))
        return handle_fail(L, "map: the function must return a batch, got nothing");
    return lua_gettop(L) - 1;
}

static int mapped_next(lua_State *L)
{
    push_source_method(L, "next");
    lua_call(L, 1, LUA_MULTRET);
    return mapped(L);
}

/* Upvalues: the mapped dataset; the function that its source's batches returned, and its
 * argument. */
static int mapped_next_of_loop(lua_State *L)
{
    lua_settop(L, 0);
    for (int i = 1; i <= 3; i++) lua_pushvalue(L, lua_upvalueindex(i));
    lua_call(L, 1, LUA_MULTRET);
    return mapped(L);
}

static int mapped_batches(lua_State *L)
{
    push_source_method(L, "batches");
    lua_call(L, 1, 4);
    lua_insert(L, 2); /* what ends the loop */
    lua_pop(L, 1);
    lua_pushvalue(L, 1);
    lua_insert(L, 3);
    lua_pushcclosure(L, mapped_next_of_loop, 3);
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushvalue(L, 2);
    return 4;
}

static int mapped_rewind(lua_State *L)
{
    push_source_method(L, "rewind");
    lua_call(L, 1, 0);
    return 1;
}

static int mapped_rows(lua_State *L)
{
    push_source_method(L, "rows");
    lua_call(L, 1, 1);
    return 1;
}

static int mapped_count(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "source");
    lua_len(L, -1);
    return 1;
}

static const luaL_Reg mapped_methods[] = {
    {"batches", mapped_batches}, {"next", mapped_next}, {"map", map},
    {"rewind", mapped_rewind},   {"rows", mapped_rows}, {NULL, NULL},
};

static void open_mapped(lua_State *L)
{
    luaL_newmetatable(L, "eddy.mapped");
    lua_newtable(L);
    arguments_set(L, "dataset", mapped_methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, mapped_count);
    lua_setfield(L, -2, "__len");
    lua_pushliteral(L, "mapped dataset");
    lua_setfield(L, -2, "__name");
    lua_pop(L, 1);
}

/* ---- All rows of a dataset ------------------------------------------------------------------- */

static int rewind_set(lua_State *L)
{
    ed_dataset *set = handle_check(L, 1, HANDLE_DATASET);
    lua_settop(L, 1);
    return handle_return(L, ed_dataset_rewind(set));
}

static int rows(lua_State *L)
{
    lua_pushinteger(L, ed_dataset_rows(handle_check(L, 1, HANDLE_DATASET)));
    return 1;
}

static int count(lua_State *L)
{
    lua_pushinteger(L, ed_dataset_batches(handle_check(L, 1, HANDLE_DATASET)));
    return 1;
}

static int push_all(lua_State *L, ed_tensor *(*tensor)(const ed_dataset *set))
{
    const ed_dataset *set = handle_check(L, 1, HANDLE_DATASET);
    handle *h = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    return binding_finish(L, &b, h, tensor(set));
}

static int all_x(lua_State *L)
{
    return push_all(L, ed_dataset_x);
}

static int all_y(lua_State *L)
{
    return push_all(L, ed_dataset_y);
}

static const luaL_Reg methods[] = {
    {"next", next}, {"batches", batches}, {"map", map}, {"rewind", rewind_set},
    {"rows", rows}, {"x", all_x},         {"y", all_y}, {NULL, NULL},
};

static const luaL_Reg metamethods[] = {{"__len", count}, {NULL, NULL}};

void datasets_open(lua_State *L)
{
    maker_open(L, makers);
    open_loops(L);
    open_mapped(L);
    objects_methods(L, HANDLE_DATASET, methods, metamethods, NULL);
}
