#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/custom_layers.h"
#include <string.h>

/*
 * Layers written in Lua. ed.layer{...} describes a kind and returns the function that creates
 * layers of it:
 *
 *     local Scale = ed.layer{
 *         name = "scale",
 *         init = function(self, factor) self.factor = factor end,
 *         build = function(self, x)
 *             self.gain = self:weight("gain", {x.shape[x.rank]}, {initializer = "ones"})
 *         end,
 *         forward = function(self, x, options) return x * self.gain * self.factor end,
 *     }
 *     local model = ed.sequential{Scale(2), ed.dense(10)}
 *
 * init gets the arguments of that function, build the first input; both are optional. self is the
 * layer. A field is looked up in the layer, then in the description. Layers and variables in
 * fields, or in tables that are fields, become children and weights of the layer (self:add(layer)
 * adds a child without a field). If one of the arguments is a table of options with a name, as in
 * Scale(2, {name = "twice"}), it names the layer.
 *
 *     fields ---metatable---> __index: the description
 */

/* Exists as long as a layer of it, which may outlive the Lua state, or the function that creates
 * them. */
typedef struct custom_kind {
    ed_layer_class class;
    int64_t users;
    char name[];
} custom_kind;

static void let_go(custom_kind *kind)
{
    if (kind && !--kind->users) ed_memory_free(kind);
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

typedef struct custom_call {
    ed_layer *layer;
    const ed_layer_call *call;
    bool building;
    ed_list *outputs, *masks; /* of forward; retained */
} custom_call;

static void push_tensors(lua_State *L, ed_tensor *const *tensors, int n)
{
    luaL_checkstack(L, n + 8, "too many inputs");
    for (int i = 0; i < n; i++) handle_put(handle_new(L, HANDLE_TENSOR), tensors[i]);
}

/* Pushes {training = , mask = , masks = }: the mask of the first input, and, for several inputs,
 * a table of all, false for none. */
static void push_options(lua_State *L, const ed_layer_call *call)
{
    bool any = false;
    lua_createtable(L, 0, 3);
    lua_pushboolean(L, call->training);
    lua_setfield(L, -2, "training");
    if (call->masks[0]) {
        push_tensors(L, call->masks, 1);
        lua_setfield(L, -2, "mask");
    }
    for (int i = 0; i < call->n_inputs; i++) any |= call->masks[i] != NULL;
    if (!any || call->n_inputs == 1) return;
    lua_createtable(L, call->n_inputs, 0);
    for (int i = 0; i < call->n_inputs; i++) {
        if (call->masks[i])
            push_tensors(L, &call->masks[i], 1);
        else
            lua_pushboolean(L, false);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "masks");
}

/* Pops the mask at the top of the stack; NULL if it is not a mask. */
static ed_tensor *pop_mask(lua_State *L)
{
    ed_tensor *mask = handle_at(L, -1, HANDLE_TENSOR);
    lua_pop(L, 1);
    return mask;
}

/* The value after the outputs: {mask = m} of the first, {masks = {m, ...}} of all. Lua's tables
 * on the stack keep the objects alive. */
static void take_masks(lua_State *L, ed_tensor **masks, int n, int at)
{
    lua_getfield(L, at, "mask");
    if ((masks[0] = pop_mask(L)) || lua_getfield(L, at, "masks") != LUA_TTABLE) return;
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i + 1);
        masks[i] = pop_mask(L);
    }
}

/* The values from `first` to the top of the stack, which forward returned. */
static int take_outputs(lua_State *L, custom_call *c, int first)
{
    int last = lua_gettop(L);
    const int masks_at = last > first && lua_type(L, last) == LUA_TTABLE ? last-- : 0;
    if (last < first) lua_pushnil(L), last = first;
    const int n = last - first + 1;
    ed_tensor **outputs = lua_newuserdatauv(L, 2 * (size_t)n * sizeof *outputs, 0);
    memset(outputs, 0, 2 * (size_t)n * sizeof *outputs);
    for (int i = 0; i < n; i++) {
        outputs[i] = handle_at(L, first + i, HANDLE_TENSOR);
        if (!outputs[i])
            return handle_fail(L, "%s: forward must return a tensor, got %s",
                               ed_layer_name(c->layer), convert_kind(L, first + i).s);
    }
    if (masks_at) take_masks(L, outputs + n, n, masks_at);
    ed_scope scope = ed_scope_open();
    c->outputs = ed_retain(ed_list_make(outputs, n));
    c->masks = ed_retain(ed_list_make_optional(outputs + n, n));
    ed_scope_close(&scope);
    return c->masks ? 0 : handle_raise(L);
}

/* Runs protected: may raise anywhere. */
static int run_method(lua_State *L)
{
    custom_call *c = lua_touserdata(L, 1);
    const int n = c->call->n_inputs;
    if (c->building) fields_collect(L, c->layer);
    identity_push(L, c->layer);
    const int self = lua_gettop(L);
    identity_push_fields(L, self);
    lua_getfield(L, -1, c->building ? "build" : "forward");
    if (c->building && lua_isnil(L, -1)) return 0;
    const int function = lua_gettop(L);
    lua_pushvalue(L, self);
    push_tensors(L, c->call->inputs, n);
    if (c->building) {
        lua_call(L, 1 + n, 0);
        fields_collect(L, c->layer);
        return 0;
    }
    push_options(L, c->call);
    lua_call(L, 2 + n, LUA_MULTRET);
    return take_outputs(L, c, function);
}

static bool custom_build(ed_layer *layer, const ed_layer_call *call)
{
    const custom_state *state = ed_layer_state(layer);
    custom_call c = {.layer = layer, .call = call, .building = true};
    return call_protected(state->hold, run_method, &c);
}

static bool give_outputs(const custom_call *c, ed_layer_call *call)
{
    for (int64_t i = 0; i < ed_list_size(c->outputs); i++) {
        if (!ed_layer_return(call, ed_scope_hold(ed_list_get(c->outputs, i)))) return false;
        ed_tensor *mask = ed_list_get(c->masks, i);
        if (mask && !ed_layer_return_mask(call, (int)i, ed_scope_hold(mask))) return false;
    }
    return true;
}

static bool custom_forward(ed_layer *layer, ed_layer_call *call)
{
    const custom_state *state = ed_layer_state(layer);
    custom_call c = {.layer = layer, .call = call};
    const bool ok = call_protected(state->hold, run_method, &c) && give_outputs(&c, call);
    ed_release(c.outputs);
    ed_release(c.masks);
    return ok;
}

static void custom_destroy(ed_layer *layer)
{
    custom_state *state = ed_layer_state(layer);
    call_release(state->hold);
    state->hold = NULL;
    let_go(state->kind);
}

/* ---- Creation -------------------------------------------------------------------------------- */

/* The name at an index of the stack, the value of an option. */
static const char *check_name(lua_State *L, int at)
{
    if (lua_type(L, at) != LUA_TSTRING)
        handle_fail(L, "layer: name must be a string, got %s", convert_kind(L, at).s);
    if (!convert_is_plain(L, at)) handle_fail(L, "layer: name contains a zero byte");
    return lua_tostring(L, at);
}

/* The name in the options, if the last argument is a table of options; NULL if there is none. */
static const char *name_given(lua_State *L)
{
    int last = lua_gettop(L);
    if (!last || lua_type(L, last) != LUA_TTABLE) return NULL;
    lua_getfield(L, last, "name");
    if (lua_isnil(L, -1)) return lua_pop(L, 1), NULL;
    return check_name(L, last + 1);
}

/* The function that creates layers. Upvalues: the box of the kind, the metatable of fields. */
static int make(lua_State *L)
{
    custom_kind *kind = *(custom_kind **)lua_touserdata(L, lua_upvalueindex(1));
    int n = lua_gettop(L);
    luaL_checkstack(L, n + 16, NULL);
    const char *name = name_given(L);
    handle *h = handle_new(L, HANDLE_LAYER);
    int layer_at = lua_gettop(L);
    identity_push_fields(L, layer_at);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_setmetatable(L, -2);
    lua_pushboolean(L, true);
    call_hold *hold = call_hold_new(L, -1);
    binding b = binding_open(L);
    ed_layer *layer = ed_layer_new(&kind->class, name);
    if (layer) {
        *(custom_state *)ed_layer_state(layer) = (custom_state){hold, kind};
        kind->users++;
    } else
        call_release(hold);
    handle_put(h, layer);
    binding_close(&b);
    if (!layer) return handle_raise(L);
    lua_settop(L, layer_at + 1);
    identity_set(L, layer, layer_at);
    lua_getfield(L, layer_at + 1, "init");
    if (!lua_isnil(L, -1)) {
        lua_pushvalue(L, layer_at);
        for (int i = 1; i <= n; i++) lua_pushvalue(L, i);
        lua_call(L, n + 1, 0);
        fields_collect(L, layer);
    }
    lua_settop(L, layer_at);
    return 1;
}

static void check_function(lua_State *L, const char *name, bool needed)
{
    int type = lua_getfield(L, 1, name);
    if (type != LUA_TFUNCTION && (needed || type != LUA_TNIL))
        handle_fail(L, "layer: %s must be a function, got %s", name, convert_kind(L, -1).s);
    lua_pop(L, 1);
}

static int end_kind(lua_State *L)
{
    custom_kind **box = lua_touserdata(L, 1);
    let_go(*box);
    *box = NULL;
    return 0;
}

/* Pushes a box with a new kind. */
static void push_kind(lua_State *L, const char *name)
{
    custom_kind **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    luaL_setmetatable(L, "eddy.layer_kind");
    custom_kind *kind = *box = ed_memory_alloc(sizeof *kind + strlen(name) + 1);
    if (!kind) handle_raise(L);
    strcpy(kind->name, name);
    kind->users = 1;
    kind->class = (ed_layer_class){
        .kind.name = kind->name,
        .state_size = sizeof(custom_state),
        .max_inputs = -1,
        .build = custom_build,
        .forward = custom_forward,
        .destroy = custom_destroy,
    };
}

/* layer{name = , forward = , build = , init = , ...}: the function that creates such layers. */
static int describe(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    check_function(L, "forward", true);
    check_function(L, "build", false);
    check_function(L, "init", false);
    lua_getfield(L, 1, "name");
    const char *name = lua_isnil(L, 2) ? "layer" : check_name(L, 2);
    push_kind(L, name);
    lua_createtable(L, 0, 1); /* the metatable of fields */
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcclosure(L, make, 2);
    return 1;
}

bool custom_layers_made(const ed_layer *layer)
{
    return ed_layer_kind(layer)->forward == custom_forward;
}

void custom_layers_open(lua_State *L)
{
    luaL_newmetatable(L, "eddy.layer_kind");
    lua_pushcfunction(L, end_kind);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    arguments_push(L, "layer", describe);
    lua_setfield(L, -2, "layer");
}
