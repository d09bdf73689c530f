#include "data/data.h"
#include "lua/maker.h"
#include "lua/objects.h"

/*
 * Datasets in Lua.
 *
 *     local train = ed.dataset(x, y, {batch = 32, shuffle = true})     ed.mnist("train", {dir = })
 *     for x, y in train:batches() do ... end
 */

typedef struct dataset {
    ed_tensor *x, *y;
    ed_dataset_options options;
} dataset;

static const maker_field dataset_fields[] = {
    {"x", .offset = offsetof(dataset, x), .read = maker_operand},
    {"y", .offset = offsetof(dataset, y), .read = maker_operand},
    {"batch", ED_ATTR_INT, .offset = offsetof(dataset, options.batch)},
    {"shuffle", ED_ATTR_BOOL, .offset = offsetof(dataset, options.shuffle)},
    {"drop_remainder", ED_ATTR_BOOL, .offset = offsetof(dataset, options.drop_remainder)},
    {"seed", ED_ATTR_INT, .offset = offsetof(dataset, options.seed)},
    {"pixels", ED_ATTR_BOOL, .offset = offsetof(dataset, options.pixels)},
    {0},
};

static void *make_dataset(const void *arguments)
{
    const dataset *d = arguments;
    return ed_dataset_with(d->x, d->y, &d->options);
}

typedef struct mnist {
    const char *split;
    ed_mnist_options options;
} mnist;

static const maker_field mnist_fields[] = {
    {"split", ED_ATTR_STRING, .offset = offsetof(mnist, split)},
    {"dir", ED_ATTR_STRING, .offset = offsetof(mnist, options.dir)},
    {"batch", ED_ATTR_INT, .offset = offsetof(mnist, options.batch)},
    {"shuffle", ED_ATTR_BOOL, .offset = offsetof(mnist, options.shuffle)},
    {"drop_remainder", ED_ATTR_BOOL, .offset = offsetof(mnist, options.drop_remainder)},
    {"seed", ED_ATTR_INT, .offset = offsetof(mnist, options.seed)},
    {0},
};

static void *make_mnist(const void *arguments)
{
    const mnist *m = arguments;
    if (!m->options.dir)
        return ed_fail(ED_INVALID_ARGUMENT, "mnist: dir is missing, the folder of the files");
    return ed_mnist_with(m->split, &m->options);
}

static const maker makers[] = {
    {"dataset", HANDLE_DATASET, 2, 2, dataset_fields, sizeof(dataset), NULL, make_dataset},
    {"mnist", HANDLE_DATASET, 1, 1, mnist_fields, sizeof(mnist), NULL, make_mnist},
    {0},
};

/* ---- Batches --------------------------------------------------------------------------------- */

/* next(): x, y of the next batch; nil at the end of an epoch. */
static int next(lua_State *L)
{
    ed_dataset *set = handle_check(L, 1, HANDLE_DATASET);
    lua_settop(L, 1);
    handle *hx = handle_new(L, HANDLE_TENSOR), *hy = handle_new(L, HANDLE_TENSOR);
    ed_tensor *x, *y;
    binding b = binding_open(L);
    bool more = ed_next(set, &x, &y);
    if (more) {
        handle_put(hx, x);
        handle_put(hy, y);
    }
    binding_close(&b);
    if (more) return 2;
    if (ed_failed()) return handle_raise(L);
    lua_pushnil(L);
    return 1;
}

/* for x, y in set:batches(): to the end of the epoch from where the set stands, which is its
 * beginning, unless next, a loop that was left or a restored checkpoint went further. */
static int batches(lua_State *L)
{
    handle_check(L, 1, HANDLE_DATASET);
    lua_settop(L, 1);
    lua_pushcfunction(L, next);
    lua_insert(L, 1);
    return 2;
}

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

static int whole(lua_State *L, ed_tensor *(*tensor)(const ed_dataset *set))
{
    const ed_dataset *set = handle_check(L, 1, HANDLE_DATASET);
    handle *h = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    return binding_finish(L, &b, h, tensor(set));
}

static int all_x(lua_State *L)
{
    return whole(L, ed_dataset_x);
}

static int all_y(lua_State *L)
{
    return whole(L, ed_dataset_y);
}

static const luaL_Reg methods[] = {
    {"next", next}, {"batches", batches}, {"rewind", rewind_set}, {"rows", rows},
    {"x", all_x},   {"y", all_y},         {NULL, NULL},
};

static const luaL_Reg metamethods[] = {{"__len", count}, {NULL, NULL}};

void datasets_open(lua_State *L)
{
    maker_open(L, makers);
    objects_methods(L, HANDLE_DATASET, methods, metamethods, NULL);
}
