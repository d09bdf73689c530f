#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/ops.h"
#include "lua/custom_layers.h"
#include <stdio.h>
#include <string.h>

/*
 * Layers in Lua.
 *
 *     local model = ed.sequential{ed.flatten(), ed.dense(128, {activation = "relu"}), ed.dense(10)}
 *     local y = model(x, {training = true})
 *     model[1], #model, model.name, model:variables(), model:summary()
 */

/* ---- Creation -------------------------------------------------------------------------------- */

typedef struct activate {
    ed_tensor *x;
    const char *activation;
} activate;

static const ed_field activation_field = {"activation", ED_FIELD_ACTIVATION,
                                          offsetof(activate, activation), "", ED_ANY};

static const maker_field activate_fields[] = {
    {"x", .offset = offsetof(activate, x), .read = maker_floats},
    {"activation", .schema = &activation_field},
    {0},
};

static void *make_activate(const void *arguments)
{
    const activate *a = arguments;
    return ed_activate(a->x, a->activation);
}

typedef struct initialize {
    ed_initializer *initializer;
    ed_ints shape;
    ed_dtype dtype;
} initialize;

static const ed_field initializer_field = {"initializer", ED_FIELD_INITIALIZER,
                                           offsetof(initialize, initializer), "", ED_ANY};

static const maker_field initialize_fields[] = {
    {"initializer", .schema = &initializer_field},
    {"shape", ED_FIELD_INTS, .offset = offsetof(initialize, shape)},
    {"dtype", ED_FIELD_DTYPE, .offset = offsetof(initialize, dtype)},
    {0},
};

static void *make_initialize(const void *arguments)
{
    const initialize *a = arguments;
    return ed_initialize(a->initializer, a->shape, a->dtype);
}

static const maker makers[] = {
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
        handle_fail(L, "sequential: value %d must be a layer, got %s", (int)i,
                    convert_kind(L, -1).s);
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
    static const ed_field fields[] = ED_FIELDS(ED_LAYER_COMMON, ed_layer_sequential_options);
    ed_layer_sequential_options options =
        ED_NEW_OPTIONS(ED_LAYER_SEQUENTIAL_OPTIONS, ed_layer_sequential_options);
    options.layers = (ed_objects){(void *const *)layers, count};
    convert_room room = {.who = "sequential"};
    binding b = binding_open(L);
    const int type = lua_type(L, last);
    const bool wrong = type != LUA_TNIL && type != LUA_TTABLE;
    if (wrong)
        ed_fail(ED_INVALID_ARGUMENT, "sequential: expected a table of options, got %s",
                convert_kind(L, last).s);
    const bool fine = !wrong && (!table || convert_schema(L, 1, fields, count, &options, &room)) &&
                      convert_schema(L, last, fields, 0, &options, &room);
    binding_finish(L, &b, h, fine ? ed_layer_sequential_with(&options) : NULL);
    identity_set(L, h->object, -1);
    return 1;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

typedef struct forward_options {
    ed_forward_options eddy;
    bool return_masks;
} forward_options;

static bool masks_at(lua_State *L, int at, const maker_field *field, void *to, convert_room *room)
{
    (void)field, (void)room;
    return (*(ed_list **)to = convert_list(L, at)) != NULL;
}

static const maker_field forward_fields[] = {
    {"training", ED_FIELD_BOOL, .offset = offsetof(forward_options, eddy.training)},
    {"mask", .offset = offsetof(forward_options, eddy.mask), .read = maker_operand},
    {"masks", .offset = offsetof(forward_options, eddy.masks), .read = masks_at},
    {"return_masks", ED_FIELD_BOOL, .offset = offsetof(forward_options, return_masks)},
    {0},
};

/* Whether the value at an index of the stack, which is not the first input, is a table of
 * options. */
static bool is_options(lua_State *L, int at)
{
    if (lua_type(L, at) != LUA_TTABLE) return false;
    lua_pushnil(L);
    if (!lua_next(L, at)) return true;
    lua_pop(L, 2);
    return convert_has_names(L, at);
}

/* Whether the only input is a table of tensors, and the layer one that has several inputs. */
static bool is_list(lua_State *L, const ed_layer *layer, int first, int last)
{
    const ed_layer_class *kind = ed_layer_kind(layer);
    if (first != last || lua_type(L, first) != LUA_TTABLE) return false;
    const bool several = kind->max_inputs ? kind->max_inputs != 1 : kind->min_inputs > 1;
    if (!several || kind->in_order) return false;
    lua_rawgeti(L, first, 1);
    const bool is = handle_at(L, -1, HANDLE_TENSOR) != NULL;
    lua_pop(L, 1);
    return is;
}

static ed_list *inputs_at(lua_State *L, const ed_layer *layer, int first, int last)
{
    if (is_list(L, layer, first, last)) return convert_list(L, first);
    const int n = last - first + 1;
    ed_tensor **inputs = ed_scope_alloc((size_t)n * sizeof *inputs);
    for (int i = 0; i < n; i++)
        if (!inputs || !(inputs[i] = ed_scope_hold(convert_operand(L, first + i, ED_DTYPE_NONE))))
            return NULL;
    return ed_list_make(inputs, n);
}

/* The outputs, one by one, and with return_masks a table of their masks. `list` and `masks` are at
 * the top of the stack, in this order. */
static int push_outputs(lua_State *L, ed_list *outputs, ed_list *masks)
{
    const int64_t n = ed_list_size(outputs);
    luaL_checkstack(L, (int)n + 4, "a layer has too many outputs");
    for (int64_t i = 0; i < n; i++)
        handle_put(handle_new(L, HANDLE_TENSOR), ed_list_get(outputs, i));
    if (!masks) return (int)n;
    convert_push_list(L, masks);
    return (int)n + 1;
}

/* layer(x, ..., {training = true, mask = , masks = {}, return_masks = true}) */
static int forward(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checkany(L, 2);
    int last = lua_gettop(L);
    const int options_at = last > 2 && is_options(L, last) ? last-- : 0;
    handle *outputs = handle_new(L, HANDLE_LIST), *masks = handle_new(L, HANDLE_LIST);
    luaL_checkstack(L, 2 * ED_MAX_RANK + 32, NULL);
    forward_options options = {0};
    ed_list *given = NULL, *result = NULL;
    convert_room room = {.who = "forward"};
    binding b = binding_open(L);
    ed_list *inputs = inputs_at(L, layer, 2, last);
    bool fine = inputs && ed_scope_hold(layer) &&
                (!options_at || maker_options(L, options_at, forward_fields, &options, &room));
    if (options.return_masks) options.eddy.output_masks = &given;
    if (fine) result = ed_forward_list(layer, inputs, &options.eddy);
    handle_put(outputs, result);
    handle_put(masks, given);
    const bool symbolic = result && ed_list_size(result) && ed_is_symbolic(ed_list_get(result, 0));
    binding_close(&b);
    if (symbolic) identity_hold(L, layer);
    return result ? push_outputs(L, outputs->object, masks->object) : handle_raise(L);
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

static int get_weights(lua_State *L)
{
    return list_by(L, ed_layer_get_weights);
}

static int losses(lua_State *L)
{
    return list_by(L, ed_layer_losses);
}

static int find(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    ed_layer *found = ed_layer_find_child(layer, maker_check_text(L, 2));
    if (!found) return handle_raise(L);
    identity_push(L, found);
    return 1;
}

/* What a function of the model and of the options at 2 says. */
static int say(lua_State *L, const char *who, const ed_field *fields, void *options,
               const char *(*text)(ed_layer *model, const void *options))
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    lua_settop(L, 2);
    luaL_checkstack(L, 16, NULL);
    convert_room room = {.who = who};
    binding b = binding_open(L);
    const bool fine = convert_schema(L, 2, fields, 0, options, &room);
    return binding_finish_text(L, &b, fine ? text(layer, options) : NULL);
}

static const char *summary_text(ed_layer *model, const void *options)
{
    return ed_model_summary_with(model, options);
}

/* summary({expand_nested = , show_trainable = }) */
static int summary(lua_State *L)
{
    static const ed_field fields[] = ED_FIELDS(ED_SUMMARY_OPTIONS, ed_summary_options);
    ed_summary_options options = ED_NEW_OPTIONS(ED_SUMMARY_OPTIONS, ed_summary_options);
    return say(L, "summary", fields, &options, summary_text);
}

static const char *dot_text(ed_layer *model, const void *options)
{
    return ed_model_to_dot_with(model, options);
}

/* to_dot({show_shapes = , left_to_right = }) */
static int to_dot(lua_State *L)
{
    static const ed_field fields[] = ED_FIELDS(ED_DOT_OPTIONS, ed_dot_options);
    ed_dot_options options = ED_NEW_OPTIONS(ED_DOT_OPTIONS, ed_dot_options);
    return say(L, "to_dot", fields, &options, dot_text);
}

/* ---- As a tree ------------------------------------------------------------------------------- */

static int64_t parameters(const ed_layer *layer)
{
    int64_t count = 0;
    for (int64_t i = 0; i < ed_layer_weight_count(layer); i++)
        count += ed_size(ed_layer_weight(layer, i));
    for (int64_t i = 0; i < ed_layer_child_count(layer); i++)
        count += parameters(ed_layer_child(layer, i));
    return count;
}

/* "dense_1 (dense): kernel [128, 10], bias [10]", indented. */
static void push_tree_line(lua_State *L, const ed_layer *layer, int depth)
{
    luaL_Buffer line;
    luaL_buffinit(L, &line);
    for (int i = 0; i < depth; i++) luaL_addstring(&line, "  ");
    const char *name = ed_layer_name(layer), *kind = ed_layer_kind(layer)->kind.name;
    luaL_addstring(&line, name);
    if (strcmp(name, kind) != 0) {
        luaL_addstring(&line, " (");
        luaL_addstring(&line, kind);
        luaL_addchar(&line, ')');
    }
    for (int64_t i = 0; i < ed_layer_weight_count(layer); i++) {
        const ed_tensor *weight = ed_layer_weight(layer, i);
        luaL_addstring(&line, i ? ", " : ": ");
        luaL_addstring(&line, strrchr(ed_variable_name(weight), '/') + 1);
        luaL_addchar(&line, ' ');
        luaL_addstring(&line, strchr(convert_type(weight).s, '['));
        if (!ed_variable_is_trainable(weight)) luaL_addstring(&line, " not trainable");
    }
    luaL_pushresult(&line);
}

/* Appends the lines of the layer and of those below it to the table. */
static void add_tree(lua_State *L, int lines, const ed_layer *layer, int depth)
{
    push_tree_line(L, layer, depth);
    lua_rawseti(L, lines, (lua_Integer)lua_rawlen(L, lines) + 1);
    for (int64_t i = 0; i < ed_layer_child_count(layer); i++)
        add_tree(L, lines, ed_layer_child(layer, i), depth + 1);
}

void layers_push_tree(lua_State *L, const ed_layer *layer)
{
    luaL_checkstack(L, 8, NULL);
    lua_newtable(L);
    const int lines = lua_gettop(L);
    add_tree(L, lines, layer, 0);
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, lines);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, lines, i);
        luaL_addvalue(&text);
        luaL_addchar(&text, '\n');
    }
    char sum[64] = "not built: the first call makes its variables";
    if (ed_layer_is_built(layer))
        snprintf(sum, sizeof sum, "%lld parameters", (long long)parameters(layer));
    luaL_addstring(&text, sum);
    luaL_pushresult(&text);
    lua_remove(L, lines);
}

/* tree(): the lines that the prompt shows for a layer. */
static int tree(lua_State *L)
{
    layers_push_tree(L, handle_check(L, 1, HANDLE_LAYER));
    return 1;
}

/* ---- Saving ---------------------------------------------------------------------------------- */

/* Saves or loads the layer alone, as "layer" in the file. Inside a scope. */
static ed_checkpoint *checkpoint_of(ed_layer *layer)
{
    return ed_scope_hold(layer) ? ed_checkpoint("layer", layer) : NULL;
}

/* save_weights(path): a checkpoint of it; returns the path. */
static int save_weights(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    const char *path = maker_check_text(L, 2);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    return binding_finish_text(L, &b, ed_checkpoint_write(checkpoint_of(layer), path));
}

/* load_weights(path): the layer; every variable that it has must be in the file. */
static int load_weights(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    const char *path = maker_check_text(L, 2);
    binding b = binding_open(L);
    ed_restoration *restored = ed_checkpoint_read(checkpoint_of(layer), path);
    const bool fine = ed_restoration_assert_existing_objects_matched(restored);
    binding_close(&b);
    lua_settop(L, 1);
    return handle_return(L, fine);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* add(child): returns it. */
static int add(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER), *child = handle_check(L, 2, HANDLE_LAYER);
    lua_settop(L, 2);
    identity_set(L, layer, 1);
    return handle_return(L, identity_add_child(L, layer, child, NULL, 2));
}

/* weight(name, shape, {initializer = , trainable = , dtype = }): the variable. */
static int add_weight(lua_State *L)
{
    static const ed_field fields[] = ED_FIELDS(ED_WEIGHT_OPTIONS, ed_weight_options);
    static const ed_field shape_field = {"shape", ED_FIELD_INTS, 0, "", ED_ANY};
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    const char *name = maker_check_text(L, 2);
    lua_settop(L, 4);
    handle *h = handle_new(L, HANDLE_TENSOR);
    luaL_checkstack(L, 32, NULL);
    ed_ints shape;
    ed_weight_options options = ED_NEW_OPTIONS(ED_WEIGHT_OPTIONS, ed_weight_options);
    convert_room room = {.who = "weight"};
    binding b = binding_open(L);
    const bool fine = convert_field(L, 3, &shape_field, &shape, &room) &&
                      convert_options(L, 4, fields, &options, &room);
    return binding_finish(L, &b, h,
                          fine ? ed_layer_add_weight_with(layer, name, shape, &options) : NULL);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* Child i, counted from 1; -1 is the last; nil outside, so that ipairs ends. */
static int child(lua_State *L, ed_layer *layer, lua_Integer i)
{
    int64_t count = ed_layer_child_count(layer), at = i > 0 ? i - 1 : i + count;
    if (!i)
        return handle_fail(
            L, "index 0 is out of bounds: children count from 1, and from -1 at the end");
    if (at < 0 || at >= count) return lua_pushnil(L), 1;
    identity_push(L, ed_layer_child(layer, at));
    return 1;
}

/* Pushes the optimizer of a compiled model, or nil. */
static void push_optimizer(lua_State *L, const ed_layer *layer)
{
    ed_optimizer *optimizer = ed_model_optimizer(layer);
    if (optimizer)
        handle_put(handle_new(L, HANDLE_OPTIMIZER), optimizer);
    else
        lua_pushnil(L);
}

static bool property(lua_State *L, const ed_layer *layer, const char *key)
{
    if (!strcmp(key, "name"))
        lua_pushstring(L, ed_layer_name(layer));
    else if (!strcmp(key, "kind"))
        lua_pushstring(L, ed_layer_kind(layer)->kind.name);
    else if (!strcmp(key, "built"))
        lua_pushboolean(L, ed_layer_is_built(layer));
    else if (!strcmp(key, "optimizer"))
        push_optimizer(L, layer);
    else
        return false;
    return true;
}

static int get_layer_field(lua_State *L)
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

/* Only layers written in Lua have fields. */
static int set_layer_field(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    if (!custom_layers_made(layer))
        return handle_fail(L, "a field can be set only in layers written in Lua");
    const char *key = maker_check_text(L, 2);
    lua_settop(L, 3);
    luaL_getmetafield(L, 1, "__index");
    lua_getupvalue(L, -1, 1);
    lua_pushvalue(L, 2);
    bool taken = lua_rawget(L, -2) != LUA_TNIL || property(L, layer, key);
    if (taken)
        return handle_fail(L, "'%s' is a method or property of all layers and can't be set", key);
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
    binding_finish_text(L, &b, ed_layer_path(layer));
    lua_pushfstring(L, "layer %s (%s)", lua_tostring(L, -1), ed_layer_kind(layer)->kind.name);
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
    {"to_dot", to_dot},
    {"tree", tree},
    {"save_weights", save_weights},
    {"load_weights", load_weights},
    {"not_trainable", not_trainable},
    {"weight", add_weight},
    {"add", add},
    {"build", layer_build},
    {"get_weights", get_weights},
    {"set_weights", layer_set_weights},
    {"count_params", layer_count_params},
    {"set_trainable", layer_set_trainable},
    {"reset_states", layer_reset_states},
    {"adapt", layer_adapt},
    {"get_vocabulary", layer_get_vocabulary},
    {"is_trainable", layer_is_trainable},
    {"losses", losses},
    {"add_loss", layer_add_loss},
    {"compile", layer_compile},
    {"fit", layer_fit},
    {"evaluate", layer_evaluate},
    {"predict", layer_predict},
    {"save", layer_save},
    {"inputs", layer_inputs},
    {"outputs", layer_outputs},
    {"values", layer_values},
    {NULL, NULL},
};

static const luaL_Reg metamethods[] = {
    {"__newindex", set_layer_field},
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
    lua_getfield(L, -1, "layers");
    arguments_push(L, "sequential", sequential);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "sequential"); /* ed.layers.sequential */
    lua_setfield(L, -3, "sequential");
    lua_pop(L, 1);
    objects_methods(L, HANDLE_LAYER, methods, metamethods, get_layer_field);
}
