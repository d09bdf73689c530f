#include "lua/custom_layers.h"

/*
 * Each layer has one userdata in Lua, and Lua sees the references that C's layers hold:
 *
 *     userdata ---> fields ---> userdata of the children
 *        |             |
 *        |             `--(layers written in Lua)--> what the program puts there
 *        `--> layer ------> children
 *
 * So there are no roots here. From a model all fields of its parts can be reached, which may lead
 * back to the model (self.me = self, a function that uses self, self.model = model): Lua's
 * collector sees and collects such cycles. A layer that only C holds, for example in a checkpoint,
 * has no fields: it has no reference into Lua.
 *
 * The exception are layers that were called with symbolic tensors, whose nodes only C sees: a root
 * holds their userdata until ed.model gives them to its userdata, and to those of its inputs and
 * outputs, of which further models may be made.
 *
 * A userdata that was closed, by the program or at the end of a scope, while a parent has the
 * layer, is opened again when the layer is used.
 */

/* Keys of the registry: layer -> userdata, weak; userdata -> fields, ephemeron; layer -> userdata
 * that wait for a model. */
static const char identity_key, fields_key, hold_key;

void identity_set(lua_State *L, const ed_layer *layer, int at)
{
    at = lua_absindex(L, at);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &identity_key);
    lua_pushvalue(L, at);
    lua_rawsetp(L, -2, layer);
    lua_pop(L, 1);
}

void identity_push(lua_State *L, ed_layer *layer)
{
    luaL_checkstack(L, 6, NULL);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &identity_key);
    lua_rawgetp(L, -1, layer);
    lua_replace(L, -2);
    handle *h = lua_touserdata(L, -1);
    if (!h && custom_layers_made(layer))
        handle_fail(L, "%s: the fields of the layer were collected", ed_layer_name(layer));
    if (!h) {
        lua_pop(L, 1);
        h = handle_new(L, HANDLE_LAYER);
        identity_set(L, layer, -1);
    }
    if (!h->object) handle_put(h, layer);
    h->closed = false;
}

void identity_push_fields(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    lua_pushvalue(L, at);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, at);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_replace(L, -2);
}

void identity_attach(lua_State *L, int parent, const ed_layer *layer, int at)
{
    at = lua_absindex(L, at);
    identity_set(L, layer, at);
    identity_push_fields(L, parent);
    lua_pushvalue(L, at);
    lua_rawsetp(L, -2, layer);
    lua_pop(L, 1);
}

bool identity_add_child(lua_State *L, ed_layer *layer, ed_layer *child, const char *field, int at)
{
    at = lua_absindex(L, at);
    identity_push(L, layer);
    const bool had = ed_layer_parent(child) == layer;
    identity_attach(L, -1, child, at);
    const int base = ed_set_index_base(1);
    const bool added = (field ? ed_layer_add_field(layer, field, child)
                              : ed_layer_add_child(layer, child)) != NULL;
    ed_set_index_base(base);
    if (!added && !had) {
        identity_push_fields(L, -1);
        lua_pushnil(L);
        lua_rawsetp(L, -2, child);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return added;
}

/* ---- Layers of models of symbols ------------------------------------------------------------- */

/* Whether the layer or one below it has fields. */
static bool has_fields(const ed_layer *layer)
{
    bool has = custom_layers_made(layer);
    for (int64_t i = 0; !has && i < ed_layer_child_count(layer); i++)
        has = has_fields(ed_layer_child(layer, i));
    return has;
}

void identity_hold(lua_State *L, ed_layer *layer)
{
    if (!has_fields(layer)) return;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hold_key);
    identity_push(L, layer);
    lua_rawsetp(L, -2, layer);
    lua_pop(L, 1);
}

void identity_take(lua_State *L, int model)
{
    ed_layer *layer = handle_check(L, model, HANDLE_LAYER);
    const int64_t n = ed_layer_child_count(layer);
    model = lua_absindex(L, model);
    for (int64_t i = 0; i < n; i++) {
        identity_push(L, ed_layer_child(layer, i));
        identity_attach(L, model, ed_layer_child(layer, i), -1);
        lua_pop(L, 1);
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hold_key);
    for (int64_t i = 0; i < n; i++) {
        lua_pushnil(L);
        lua_rawsetp(L, -2, ed_layer_child(layer, i));
    }
    lua_pop(L, 1);
}

void identity_share(lua_State *L, int at, ed_layer *model)
{
    at = lua_absindex(L, at);
    for (int64_t i = 0; i < ed_layer_child_count(model); i++) {
        ed_layer *child = ed_layer_child(model, i);
        if (!has_fields(child)) continue;
        identity_push(L, child);
        identity_attach(L, at, child, -1);
        lua_pop(L, 1);
    }
}

void identity_open(lua_State *L)
{
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hold_key);
    handle_new_weak(L, "v", &identity_key);
    handle_new_weak(L, "k", &fields_key);
}
