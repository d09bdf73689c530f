#include "lua/custom_layers.h"
#include "lua/maker.h"
#include "lua/objects.h"

/* The values of a layer's weights, what is trained of it, its penalties; building it without
 * data. */

/* The value at 2 for variable i of the list; inside a scope, NULL with an error. */
static ed_tensor *weight_given(lua_State *L, const ed_list *variables, int64_t i)
{
    const ed_tensor *v = ed_list_get(variables, i);
    lua_rawgeti(L, 2, i + 1);
    ed_tensor *given = v ? convert_operand(L, -1, ed_dtype_of(v)) : NULL;
    lua_pop(L, 1);
    return given;
}

/* set_weights{...}: the layer. */
int layer_set_weights(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    const int64_t n = (int64_t)lua_rawlen(L, 2);
    binding b = binding_open(L);
    const ed_list *variables = ed_layer_variables(layer);
    ed_list *weights = variables ? ed_list_make(NULL, 0) : NULL;
    for (int64_t i = 0; weights && i < n && i < ed_list_size(variables); i++) {
        ed_tensor *given = weight_given(L, variables, i);
        weights = given ? ed_list_concat(weights, ed_list_of_one(given)) : NULL;
    }
    if (weights && n > ed_list_size(variables))
        weights = ed_fail(ED_INVALID_ARGUMENT, "%s: got %lld weights, the layer has %lld",
                          ed_layer_path(layer), (long long)n, (long long)ed_list_size(variables));
    const bool fine = weights && ed_layer_set_weights(layer, weights);
    binding_close(&b);
    lua_settop(L, 1);
    return handle_return(L, fine);
}

int layer_count_params(lua_State *L)
{
    const int64_t n = ed_layer_count_params(handle_check(L, 1, HANDLE_LAYER));
    if (ed_failed()) return handle_raise(L);
    lua_pushinteger(L, n);
    return 1;
}

/* set_trainable(trainable [, pattern]): the layer. */
int layer_set_trainable(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checktype(L, 2, LUA_TBOOLEAN);
    const bool trainable = lua_toboolean(L, 2);
    const char *pattern = lua_isnoneornil(L, 3) ? NULL : maker_check_text(L, 3);
    const bool fine = pattern ? ed_layer_set_trainable_matching(layer, pattern, trainable)
                              : ed_layer_set_trainable(layer, trainable);
    lua_settop(L, 1);
    return handle_return(L, fine);
}

int layer_is_trainable(lua_State *L)
{
    lua_pushboolean(L, ed_layer_is_trainable(handle_check(L, 1, HANDLE_LAYER)));
    return 1;
}

/* reset_states(): the layer. */
int layer_reset_states(lua_State *L)
{
    const bool fine = ed_layer_reset_states(handle_check(L, 1, HANDLE_LAYER));
    lua_settop(L, 1);
    return handle_return(L, fine);
}

/* Calls a function with the tensor at 2; returns the layer. */
static int give_tensor(lua_State *L, bool (*take)(ed_layer *layer, ed_tensor *x))
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    lua_settop(L, 2);
    luaL_checkstack(L, 2 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    ed_tensor *x = convert_operand(L, 2, ED_DTYPE_NONE);
    const bool fine = x && take(layer, x);
    binding_close(&b);
    lua_settop(L, 1);
    return handle_return(L, fine);
}

/* adapt(data): the layer. */
int layer_adapt(lua_State *L)
{
    return give_tensor(L, ed_layer_adapt);
}

int layer_get_vocabulary(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    handle *holder = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    return binding_finish(L, &b, holder, ed_layer_get_vocabulary(layer));
}

/* add_loss(loss): the layer. */
int layer_add_loss(lua_State *L)
{
    return give_tensor(L, ed_layer_add_loss);
}

/* build({-1, 28, 28}, {dtype = }): the layer. */
int layer_build(lua_State *L)
{
    static const ed_field fields[] = ED_FIELDS(ED_BUILD_OPTIONS, ed_build_options);
    static const ed_field shape_field = {"shape", ED_FIELD_INTS, 0, "", ED_ANY};
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    lua_settop(L, 3);
    luaL_checkstack(L, 32, NULL);
    ed_ints shape;
    ed_build_options options = ED_NEW_OPTIONS(ED_BUILD_OPTIONS, ed_build_options);
    convert_room room = {.who = "build"};
    binding b = binding_open(L);
    const bool fine = convert_field(L, 2, &shape_field, &shape, &room) &&
                      convert_options(L, 3, fields, &options, &room) &&
                      ed_layer_build_with(layer, shape, &options);
    binding_close(&b);
    lua_settop(L, 1);
    return handle_return(L, fine);
}
