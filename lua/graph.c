#include "lua/arguments.h"
#include "lua/custom_layers.h"
#include "lua/maker.h"

/*
 * Models described by symbolic tensors:
 *
 *     local image, age = ed.input{28, 28}, ed.input{1}
 *     local h = ed.concat({ed.flatten()(image), age}, {axis = -1})
 *     local model = ed.model({image, age}, ed.dense(10)(h))
 */

/* ---- Inputs ---------------------------------------------------------------------------------- */

typedef struct input {
    ed_ints shape;
    ed_input_options options;
} input;

static const maker_field input_fields[] = {
    {"shape", ED_FIELD_INTS, offsetof(input, shape)},
    ED_INPUT_OPTIONS(MAKER_OPTION, input){0},
};

static void *make_input(const void *arguments)
{
    const input *i = arguments;
    return ed_input_with(i->shape, &i->options);
}

static const input input_defaults = {
    .options = ED_COMPLETE(ED_INPUT_OPTIONS, ed_input_options, .name = NULL)};

static const maker makers[] = {
    {"input", HANDLE_TENSOR, 1, 1, input_fields, sizeof(input), &input_defaults, make_input},
    {0},
};

/* is_symbolic(x): false for whatever is no tensor. */
static int is_symbolic(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, ed_is_symbolic(handle_at(L, 1, HANDLE_TENSOR)));
    return 1;
}

/* ---- Models ---------------------------------------------------------------------------------- */

/* A tensor or a table of them, as a list for the scope. */
static ed_list *tensors_at(lua_State *L, int at, const char *what)
{
    ed_tensor *t = handle_at(L, at, HANDLE_TENSOR);
    if (t) return ed_list_of_one(ed_scope_hold(t));
    if (lua_istable(L, at)) return convert_list(L, at);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "model: %s must be a symbolic tensor or a table of them, got %s", what,
                   convert_kind(L, at).s);
}

/* The tensors at `at` refer to the model's layers that have fields, so that another model can be
 * made of them when this one is gone. */
static void keep_with_tensors(lua_State *L, int at, ed_layer *model)
{
    const int top = lua_gettop(L);
    if (handle_at(L, at, HANDLE_TENSOR)) identity_share(L, at, model);
    for (lua_Integer i = 1; lua_istable(L, at) && lua_rawgeti(L, at, i) != LUA_TNIL; i++) {
        identity_share(L, -1, model);
        lua_settop(L, top);
    }
    lua_settop(L, top);
}

/* model(inputs, outputs, {name = , trainable = }) */
static int model(lua_State *L)
{
    static const ed_field fields[] = ED_FIELDS(ED_MODEL_OPTIONS, ed_model_options);
    luaL_checkany(L, 2);
    lua_settop(L, 3);
    handle *h = handle_new(L, HANDLE_LAYER);
    luaL_checkstack(L, 2 * ED_MAX_RANK + 32, NULL);
    ed_model_options options = ED_NEW_OPTIONS(ED_MODEL_OPTIONS, ed_model_options);
    convert_room room = {.who = "model"};
    binding b = binding_open(L);
    ed_list *inputs = tensors_at(L, 1, "inputs");
    ed_list *outputs = inputs ? tensors_at(L, 2, "outputs") : NULL;
    const bool fine = outputs && convert_options(L, 3, fields, &options, &room);
    binding_finish(L, &b, h, fine ? ed_model_with(inputs, outputs, &options) : NULL);
    identity_set(L, h->object, 4);
    identity_take(L, 4);
    keep_with_tensors(L, 1, h->object);
    keep_with_tensors(L, 2, h->object);
    return 1;
}

/* A table of symbolic tensors of the model. */
static int finish_symbols(lua_State *L, ed_layer *layer, ed_list *(*list)(const ed_layer *, void *),
                          void *context)
{
    handle *holder = handle_new(L, HANDLE_LIST);
    binding b = binding_open(L);
    objects_finish_list(L, &b, holder, list(layer, context));
    keep_with_tensors(L, lua_gettop(L), layer);
    return 1;
}

static ed_list *inputs_of(const ed_layer *layer, void *none)
{
    (void)none;
    return ed_model_inputs(layer);
}

static ed_list *outputs_of(const ed_layer *layer, void *none)
{
    (void)none;
    return ed_model_outputs(layer);
}

static ed_list *layer_values_of(const ed_layer *layer, void *name)
{
    return ed_model_values(layer, name);
}

int layer_inputs(lua_State *L)
{
    return finish_symbols(L, handle_check(L, 1, HANDLE_LAYER), inputs_of, NULL);
}

int layer_outputs(lua_State *L)
{
    return finish_symbols(L, handle_check(L, 1, HANDLE_LAYER), outputs_of, NULL);
}

/* values(name) */
int layer_values(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    return finish_symbols(L, layer, layer_values_of, (void *)maker_check_text(L, 2));
}

void graph_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"is_symbolic", is_symbolic}, {"model", model}, {NULL, NULL}};
    maker_open(L, makers);
    arguments_set(L, NULL, functions);
}
