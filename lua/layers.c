#include "lua/maker.h"
#include "lua/ops.h"
#include "lua/custom_layers.h"
#include <string.h>

/*
 * Layers in Lua.
 *
 *     local model = ed.sequential{ed.flatten(), ed.dense(128, {activation = "relu"}), ed.dense(10)}
 *     local y = model(x, {training = true})
 *     model[1], #model, model.name, model:variables(), model:summary()
 */

/* ---- Making ---------------------------------------------------------------------------------- */

/* The name of an activation, or the function of the op. */
static bool activation_at(lua_State *L, int at, const maker_field *field, void *to,
                          convert_room *room)
{
    const ed_op *op = ops_of(L, at);
    if (op) {
        *(const char **)to = strcmp(op->name, "exp") != 0 ? op->name : "exponential";
        return true;
    }
    const ed_attr plain = {field->name, ED_ATTR_STRING, 0, NULL};
    if (lua_type(L, at) != LUA_TFUNCTION) return convert_field(L, at, &plain, to, room);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "%s: %s is a function that is no op; a name is expected, or ed.relu and its "
                   "kin; a layer of your own can call any function",
                   room->who, field->name),
           false;
}

static const maker_field name_only[] = {
    {"name", ED_ATTR_STRING, .offset = offsetof(ed_layer_options, name)},
    {0},
};

typedef struct dense {
    int64_t units;
    ed_layer_dense_options options;
} dense;

static const maker_field dense_fields[] = {
    {"units", ED_ATTR_INT, .offset = offsetof(dense, units)},
    {"activation", .offset = offsetof(dense, options.activation), .read = activation_at},
    {"no_bias", ED_ATTR_BOOL, .offset = offsetof(dense, options.no_bias)},
    {"kernel_initializer", .offset = offsetof(dense, options.kernel_initializer),
     .read = maker_initializer},
    {"bias_initializer", .offset = offsetof(dense, options.bias_initializer),
     .read = maker_initializer},
    {"name", ED_ATTR_STRING, .offset = offsetof(dense, options.name)},
    {0},
};

static void *make_dense(const void *arguments)
{
    const dense *a = arguments;
    return ed_layer_dense_with(a->units, &a->options);
}

typedef struct conv2d {
    int64_t filters;
    ed_ints kernel_size;
    ed_layer_conv2d_options options;
} conv2d;

static const maker_field conv2d_fields[] = {
    {"filters", ED_ATTR_INT, .offset = offsetof(conv2d, filters)},
    {"kernel_size", ED_ATTR_INTS, .offset = offsetof(conv2d, kernel_size)},
    {"strides", ED_ATTR_INTS, .offset = offsetof(conv2d, options.strides)},
    {"dilations", ED_ATTR_INTS, .offset = offsetof(conv2d, options.dilations)},
    {"padding", ED_ATTR_STRING, .offset = offsetof(conv2d, options.padding)},
    {"activation", .offset = offsetof(conv2d, options.activation), .read = activation_at},
    {"no_bias", ED_ATTR_BOOL, .offset = offsetof(conv2d, options.no_bias)},
    {"kernel_initializer", .offset = offsetof(conv2d, options.kernel_initializer),
     .read = maker_initializer},
    {"bias_initializer", .offset = offsetof(conv2d, options.bias_initializer),
     .read = maker_initializer},
    {"name", ED_ATTR_STRING, .offset = offsetof(conv2d, options.name)},
    {0},
};

static void *make_conv2d(const void *arguments)
{
    const conv2d *a = arguments;
    return ed_layer_conv2d_with(a->filters, a->kernel_size, &a->options);
}

static const maker_field pool_fields[] = {
    {"window", ED_ATTR_INTS, .offset = offsetof(ed_layer_max_pooling2d_options, window)},
    {"strides", ED_ATTR_INTS, .offset = offsetof(ed_layer_max_pooling2d_options, strides)},
    {"padding", ED_ATTR_STRING, .offset = offsetof(ed_layer_max_pooling2d_options, padding)},
    {"name", ED_ATTR_STRING, .offset = offsetof(ed_layer_max_pooling2d_options, name)},
    {0},
};

static void *make_max_pool(const void *arguments)
{
    return ed_layer_max_pooling2d_with(arguments);
}

static void *make_average_pooling(const void *arguments)
{
    return ed_layer_global_average_pooling2d_with(arguments);
}

static const maker_field normalization_fields[] = {
    {"momentum", ED_ATTR_FLOAT, .offset = offsetof(ed_layer_batch_normalization_options, momentum)},
    {"epsilon", ED_ATTR_FLOAT, .offset = offsetof(ed_layer_batch_normalization_options, epsilon)},
    {"no_center", ED_ATTR_BOOL,
     .offset = offsetof(ed_layer_batch_normalization_options, no_center)},
    {"no_scale", ED_ATTR_BOOL, .offset = offsetof(ed_layer_batch_normalization_options, no_scale)},
    {"name", ED_ATTR_STRING, .offset = offsetof(ed_layer_batch_normalization_options, name)},
    {0},
};

static void *make_normalization(const void *arguments)
{
    return ed_layer_batch_normalization_with(arguments);
}

static void *make_flatten(const void *arguments)
{
    return ed_layer_flatten_with(arguments);
}

typedef struct dropout {
    double rate;
    ed_layer_dropout_options options;
} dropout;

static const maker_field dropout_fields[] = {
    {"rate", ED_ATTR_FLOAT, .offset = offsetof(dropout, rate)},
    {"generator", ED_ATTR_OBJECT, .offset = offsetof(dropout, options.generator), HANDLE_GENERATOR},
    {"name", ED_ATTR_STRING, .offset = offsetof(dropout, options.name)},
    {0},
};

static void *make_dropout(const void *arguments)
{
    const dropout *a = arguments;
    return ed_layer_dropout_with(a->rate, &a->options);
}

typedef struct activation_layer {
    const char *activation;
    ed_layer_options options;
} activation_layer;

static const maker_field activation_layer_fields[] = {
    {"activation", .offset = offsetof(activation_layer, activation), .read = activation_at},
    {"name", ED_ATTR_STRING, .offset = offsetof(activation_layer, options.name)},
    {0},
};

static void *make_activation(const void *arguments)
{
    const activation_layer *a = arguments;
    return ed_layer_activation_with(a->activation, &a->options);
}

typedef struct activate {
    ed_tensor *x;
    const char *activation;
} activate;

static const maker_field activate_fields[] = {
    {"x", .offset = offsetof(activate, x), .read = maker_floats},
    {"activation", .offset = offsetof(activate, activation), .read = activation_at},
    {0},
};

static void *make_activate(const void *arguments)
{
    const activate *a = arguments;
    return ed_activate(a->x, a->activation);
}

typedef struct initialize {
    ed_initializer initializer;
    ed_ints shape;
    ed_dtype dtype;
} initialize;

static const maker_field initialize_fields[] = {
    {"initializer", .offset = offsetof(initialize, initializer), .read = maker_initializer},
    {"shape", ED_ATTR_INTS, .offset = offsetof(initialize, shape)},
    {"dtype", ED_ATTR_DTYPE, .offset = offsetof(initialize, dtype)},
    {0},
};

static void *make_initialize(const void *arguments)
{
    const initialize *a = arguments;
    return ed_initialize(a->initializer, a->shape, a->dtype);
}

static const maker makers[] = {
    {"dense", HANDLE_LAYER, 1, 1, dense_fields, sizeof(dense), NULL, make_dense},
    {"conv2d_layer", HANDLE_LAYER, 2, 2, conv2d_fields, sizeof(conv2d), NULL, make_conv2d},
    {"max_pool2d_layer", HANDLE_LAYER, 1, 0, pool_fields, sizeof(ed_layer_max_pooling2d_options),
     NULL, make_max_pool},
    {"global_average_pooling2d", HANDLE_LAYER, 0, 0, name_only, sizeof(ed_layer_options), NULL,
     make_average_pooling},
    {"batch_normalization", HANDLE_LAYER, 0, 0, normalization_fields,
     sizeof(ed_layer_batch_normalization_options),
     &(const ed_layer_batch_normalization_options){.momentum = 0.99, .epsilon = 0.001},
     make_normalization},
    {"flatten", HANDLE_LAYER, 0, 0, name_only, sizeof(ed_layer_options), NULL, make_flatten},
    {"dropout_layer", HANDLE_LAYER, 1, 1, dropout_fields, sizeof(dropout), NULL, make_dropout},
    {"activation_layer", HANDLE_LAYER, 1, 1, activation_layer_fields, sizeof(activation_layer),
     NULL, make_activation},
    {"activate", HANDLE_TENSOR, 2, 1, activate_fields, sizeof(activate), NULL, make_activate},
    {"initialize", HANDLE_TENSOR, 2, 2, initialize_fields, sizeof(initialize),
     &(const initialize){.dtype = ED_FLOAT32}, make_initialize},
    {0},
};

/* Layer i of the table at 1, or of the arguments before the options, for the handle at the top of
 * the stack. */
static ed_layer *layer_given(lua_State *L, bool table, lua_Integer i)
{
    if (table)
        lua_rawgeti(L, 1, i);
    else
        lua_pushvalue(L, (int)i);
    ed_layer *layer = handle_at(L, -1, HANDLE_LAYER);
    if (!layer)
        handle_fail(L, "sequential: value %d is no layer but %s", (int)i, convert_kind(L, -1).s);
    identity_attach(L, -2, layer, -1);
    lua_pop(L, 1);
    return layer;
}

/* sequential{layer, layer, ..., name = }; sequential({layer, ...}, {name = });
 * sequential(layer, layer, ..., {name = }) */
static int sequential(lua_State *L)
{
    const int given = lua_gettop(L);
    const bool table = given <= 2 && lua_type(L, 1) == LUA_TTABLE;
    if (table ? given < 2 : !given || lua_type(L, given) != LUA_TTABLE) lua_pushnil(L);
    const int last = lua_gettop(L); /* options */
    const lua_Integer count = table ? (lua_Integer)lua_rawlen(L, 1) : last - 1;
    luaL_argcheck(L, count < 1 << 20, 1, "too many layers");
    luaL_checkstack(L, 16, NULL);
    ed_layer **layers = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *layers, 0);
    handle *h = handle_new(L, HANDLE_LAYER);
    for (lua_Integer i = 0; i < count; i++) layers[i] = layer_given(L, table, i + 1);
    ed_layer_options options = {0};
    convert_room room = {.who = "sequential"};
    binding b = binding_open(L);
    const bool fine =
        (!table || maker_options_beside(L, 1, name_only, (int)count, &options, &room)) &&
        maker_options(L, last, name_only, &options, &room);
    binding_finish(L, &b, h, fine ? ed_layer_sequential_of(options.name, layers, count) : NULL);
    identity_set(L, h->object, -1);
    return 1;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* layer(x, {training = true}) */
static int forward(lua_State *L)
{
    static const maker_field fields[] = {
        {"training", ED_ATTR_BOOL, .offset = offsetof(ed_forward_options, training)},
        {0},
    };
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checkany(L, 2);
    if (lua_gettop(L) > 3) return handle_fail(L, "a layer takes one input and a table of options");
    lua_settop(L, 3);
    handle *h = handle_new(L, HANDLE_TENSOR);
    luaL_checkstack(L, 2 * ED_MAX_RANK + 32, NULL);
    ed_forward_options options = {0};
    convert_room room = {.who = "forward"};
    binding b = binding_open(L);
    ed_tensor *x = handle_hold(convert_operand(L, 2, ED_DTYPE_NONE));
    bool fine = x && handle_hold(layer) && maker_options(L, 3, fields, &options, &room);
    return binding_finish(L, &b, h, fine ? ed_forward_with(layer, x, &options) : NULL);
}

static int list_by(lua_State *L, ed_list *(*list)(ed_layer *layer))
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    handle *holder = handle_new(L, HANDLE_LIST);
    binding b = binding_open(L);
    return objects_finish_list(L, &b, holder, list(layer));
}

static int variables(lua_State *L)
{
    return list_by(L, ed_layer_variables);
}

static int trainable(lua_State *L)
{
    return list_by(L, ed_layer_trainable_variables);
}

static int not_trainable(lua_State *L)
{
    return list_by(L, ed_layer_non_trainable_variables);
}

static int find(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    ed_layer *found = ed_layer_find_child(layer, maker_check_text(L, 2));
    if (!found) return handle_raise(L);
    identity_push(L, found);
    return 1;
}

static int summary(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checkstack(L, 4, NULL);
    binding b = binding_open(L);
    return binding_finish_text(L, &b, ed_layer_summary(layer));
}

/* add(child): returns it. */
static int add(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER), *child = handle_check(L, 2, HANDLE_LAYER);
    lua_settop(L, 2);
    identity_set(L, layer, 1);
    return handle_return(L, identity_add_child(L, layer, child, 2));
}

/* weight(name, shape, {initializer = , trainable = , dtype = }): the variable. */
typedef struct weight {
    ed_ints shape;
    ed_weight_options options;
    bool trainable;
} weight;

static const maker_field weight_fields[] = {
    {"initializer", .offset = offsetof(weight, options.initializer), .read = maker_initializer},
    {"trainable", ED_ATTR_BOOL, .offset = offsetof(weight, trainable)},
    {"dtype", ED_ATTR_DTYPE, .offset = offsetof(weight, options.dtype)},
    {0},
};

static int add_weight(lua_State *L)
{
    static const ed_attr shape = {"shape", ED_ATTR_INTS, .offset = offsetof(weight, shape), NULL};
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    const char *name = maker_check_text(L, 2);
    lua_settop(L, 4);
    handle *h = handle_new(L, HANDLE_TENSOR);
    luaL_checkstack(L, 32, NULL);
    weight w = {.trainable = true};
    convert_room room = {.who = "weight"};
    binding b = binding_open(L);
    bool fine =
        convert_field(L, 3, &shape, &w, &room) && maker_options(L, 4, weight_fields, &w, &room);
    w.options.not_trainable = !w.trainable;
    ed_tensor *v = fine ? ed_layer_add_weight_with(layer, name, w.shape, &w.options) : NULL;
    return binding_finish(L, &b, h, v);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* Child i, counted from 1; -1 is the last; nil outside, so that ipairs ends. */
static int child(lua_State *L, ed_layer *layer, lua_Integer i)
{
    int64_t count = ed_layer_child_count(layer), at = i > 0 ? i - 1 : i + count;
    if (!i) return handle_fail(L, "counting begins at 1 (and -1 is the last)");
    if (at < 0 || at >= count) return lua_pushnil(L), 1;
    identity_push(L, ed_layer_child(layer, at));
    return 1;
}

static bool property(lua_State *L, const ed_layer *layer, const char *key)
{
    if (!strcmp(key, "name"))
        lua_pushstring(L, layer->name);
    else if (!strcmp(key, "kind"))
        lua_pushstring(L, layer->class->name);
    else if (!strcmp(key, "built"))
        lua_pushboolean(L, layer->built);
    else
        return false;
    return true;
}

static int index_of(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    if (lua_isinteger(L, 2)) return child(L, layer, lua_tointeger(L, 2));
    if (objects_method(L)) return 1;
    if (lua_type(L, 2) == LUA_TSTRING && property(L, layer, lua_tostring(L, 2))) return 1;
    if (!custom_layers_made(layer)) return objects_no_field(L);
    identity_push_fields(L, 1);
    lua_pushvalue(L, 2);
    lua_gettable(L, -2);
    return 1;
}

/* Fields belong to layers written in Lua. */
static int new_index(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    if (!custom_layers_made(layer)) return handle_fail(L, "only layers written in Lua have fields");
    const char *key = maker_check_text(L, 2);
    lua_settop(L, 3);
    luaL_getmetafield(L, 1, "__index");
    lua_getupvalue(L, -1, 1);
    lua_pushvalue(L, 2);
    bool taken = lua_rawget(L, -2) != LUA_TNIL || property(L, layer, key);
    if (taken) return handle_fail(L, "every layer has a '%s' already", key);
    lua_settop(L, 3);
    fields_check(L, layer, key);
    fields_take(L, layer, key);
    identity_push_fields(L, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, -3);
    return 0;
}

/* for i, child in pairs(layer) */
static int next_child(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    const lua_Integer i = maker_check_integer(L, 2);
    if (i < 0 || i >= ed_layer_child_count(layer)) return 0;
    lua_pushinteger(L, i + 1);
    identity_push(L, ed_layer_child(layer, i));
    return 2;
}

static int pairs(lua_State *L)
{
    handle_check(L, 1, HANDLE_LAYER);
    lua_pushcfunction(L, next_child);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 0);
    return 3;
}

static int count(lua_State *L)
{
    lua_pushinteger(L, ed_layer_child_count(handle_check(L, 1, HANDLE_LAYER)));
    return 1;
}

/* "layer mlp/dense_1 (dense)" */
static int to_string(lua_State *L)
{
    const ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    binding_finish_text(L, &b, text_give(layer_path(layer, NULL)));
    lua_pushfstring(L, "layer %s (%s)", lua_tostring(L, -1), layer->class->name);
    return 1;
}

static int is_same(lua_State *L)
{
    const void *a = handle_at(L, 1, HANDLE_LAYER), *b = handle_at(L, 2, HANDLE_LAYER);
    lua_pushboolean(L, a && a == b);
    return 1;
}

static const luaL_Reg methods[] = {
    {"forward", forward},
    {"variables", variables},
    {"trainable", trainable},
    {"find", find},
    {"summary", summary},
    {"not_trainable", not_trainable},
    {"weight", add_weight},
    {"add", add},
    {NULL, NULL},
};

static const luaL_Reg metamethods[] = {
    {"__newindex", new_index},
    {"__len", count},
    {"__tostring", to_string},
    {"__eq", is_same},
    {"__call", forward},
    {"__pairs", pairs},
    {NULL, NULL},
};

void layers_open(lua_State *L)
{
    identity_open(L);
    maker_open(L, makers);
    lua_pushcfunction(L, sequential);
    lua_setfield(L, -2, "sequential");
    objects_methods(L, HANDLE_LAYER, methods, metamethods, index_of);
}
