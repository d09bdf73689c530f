#include "lua/own.h"
#include <stdio.h>
#include <string.h>

/*
 * What of a layer's fields belongs to it, as in Keras: layers become children, variables weights
 * named like the field (self.shift = ed.variable(0.0) is "shift"), and so do those in tables
 * (self.blocks[2] is "blocks_2"). What belongs elsewhere, another layer's child or weight, stays
 * there: layers may share it. Tables are looked through when they are put into a field, and again
 * after init, before build and after it.
 *
 * A layer keeps its parts: a field that holds one can't be given another value.
 */

/* ---- One part -------------------------------------------------------------------------------- */

static void push_fields(lua_State *L, ed_layer *layer)
{
    selves_push(L, layer);
    selves_push_fields(L, -1);
    lua_replace(L, -2);
}

/* The layer itself or one that it is in. */
static bool is_above(const ed_layer *layer, const ed_layer *other)
{
    while (layer && layer != other) layer = layer->parent;
    return layer;
}

static bool is_weight(const ed_layer *layer, const ed_tensor *v)
{
    for (int64_t i = 0; i < layer->n_weights; i++)
        if (layer->weights[i] == v) return true;
    return false;
}

/* Whether the variable's name is a path, and not that of this layer's weight of the name: from a
 * build that failed it may have that already. */
static bool is_elsewhere(const ed_layer *layer, const ed_tensor *v, const char *name)
{
    if (!strchr(ed_name(v), '/')) return false;
    char *path = layer_path(layer, name);
    const bool same = path && !strcmp(ed_name(v), path);
    memory_free(path);
    return !same;
}

static void take_layer(lua_State *L, ed_layer *layer, ed_layer *part)
{
    if (!part->parent && !is_above(layer, part) && !selves_add(L, layer, part, -1)) handle_raise(L);
}

static void take_variable(lua_State *L, ed_layer *layer, const char *name, ed_tensor *v)
{
    if (!ed_is_variable(v) || is_weight(layer, v) || is_elsewhere(layer, v, name)) return;
    if (!ed_layer_adopt(layer, name, v)) handle_raise(L);
}

/* ---- Tables of them -------------------------------------------------------------------------- */

enum { DEEPEST = 1000 }; /* values on the stack, several for each table within another */

static void take(lua_State *L, ed_layer *layer, const char *name, int seen);

/* The value at the top of the stack, in a table that is the field `name`. */
static void take_entry(lua_State *L, ed_layer *layer, const char *name, const char *key, int seen)
{
    if (lua_type(L, -1) != LUA_TTABLE && lua_type(L, -1) != LUA_TUSERDATA) return;
    if (lua_gettop(L) - seen > DEEPEST) luaL_error(L, "%s: tables are too deep in others", name);
    lua_pushfstring(L, "%s_%s", name, key);
    lua_insert(L, -2);
    take(L, layer, lua_tostring(L, -2), seen);
    lua_remove(L, -2);
}

/* What the table at the top of the stack has in its places, then what it has under names, in their
 * order. */
static void take_table(lua_State *L, ed_layer *layer, const char *name, int seen)
{
    const int at = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, at, i) != LUA_TNIL; i++) {
        char key[24];
        snprintf(key, sizeof key, "%lld", (long long)i);
        take_entry(L, layer, name, key, seen);
        lua_settop(L, at);
    }
    lua_Integer n;
    const char **names = objects_entries(L, at, NULL, &n);
    const int values = lua_gettop(L);
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, values, i + 1);
        take_entry(L, layer, name, names[i], seen);
        lua_settop(L, values);
    }
    lua_settop(L, at);
}

/* The value at the top of the stack; tables that were seen lie in the one at `seen`. */
static void take(lua_State *L, ed_layer *layer, const char *name, int seen)
{
    luaL_checkstack(L, 16, NULL);
    ed_layer *part = handle_at(L, -1, HANDLE_LAYER);
    ed_tensor *t = handle_at(L, -1, HANDLE_TENSOR);
    if (lua_type(L, -1) == LUA_TUSERDATA) handle_leave_scope(L, -1);
    if (part) take_layer(L, layer, part);
    if (t) take_variable(L, layer, name, t);
    if (lua_type(L, -1) != LUA_TTABLE) return;
    lua_pushvalue(L, -1);
    if (lua_rawget(L, seen) != LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushboolean(L, true);
    lua_rawset(L, seen);
    take_table(L, layer, name, seen);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

void own_parts_take(lua_State *L, ed_layer *layer, const char *name)
{
    lua_newtable(L);
    lua_insert(L, -2);
    take(L, layer, name, lua_gettop(L) - 1);
    lua_remove(L, -2);
}

void own_parts_gather(lua_State *L, ed_layer *layer)
{
    const int top = lua_gettop(L);
    lua_newtable(L);
    push_fields(L, layer);
    lua_Integer n;
    const char **names = objects_entries(L, -1, NULL, &n);
    const int values = lua_gettop(L);
    for (lua_Integer i = 0; i < n; i++) {
        if (lua_rawgeti(L, values, i + 1) == LUA_TTABLE) take(L, layer, names[i], top + 1);
        lua_settop(L, values);
    }
    lua_settop(L, top);
}

void own_parts_check(lua_State *L, ed_layer *layer, const char *name)
{
    const int value = lua_gettop(L);
    push_fields(L, layer);
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    const ed_layer *child = handle_at(L, -1, HANDLE_LAYER);
    const ed_tensor *v = handle_at(L, -1, HANDLE_TENSOR);
    const bool kept = (child && child->parent == layer) || (v && is_weight(layer, v));
    const bool same = (child && handle_at(L, value, HANDLE_LAYER) == child) ||
                      (v && handle_at(L, value, HANDLE_TENSOR) == v);
    if (kept && !same)
        luaL_error(L, "%s: '%s' is a part of it already, and can't be replaced",
                   ed_layer_name(layer), name);
    lua_settop(L, value);
}
