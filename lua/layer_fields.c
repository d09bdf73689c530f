#include "lua/custom_layers.h"
#include <stdarg.h>
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
 *
 * What is found is noted first, in a table "found": part 1, its name, part 2, its name ..., and as
 * keys the tables and parts that were met. All names are looked at before the first part is added:
 * a table that is refused leaves the layer as it was.
 */

/* ---- One part -------------------------------------------------------------------------------- */

static void push_fields(lua_State *L, ed_layer *layer)
{
    identity_push(L, layer);
    identity_push_fields(L, -1);
    lua_replace(L, -2);
}

/* The layer itself or one that it is in. */
static bool is_above(const ed_layer *layer, const ed_layer *other)
{
    while (layer && layer != other) layer = ed_layer_parent(layer);
    return layer;
}

static bool is_weight(const ed_layer *layer, const ed_tensor *v)
{
    for (int64_t i = 0; i < ed_layer_weight_count(layer); i++)
        if (ed_layer_weight(layer, i) == v) return true;
    return false;
}

/* Whether the variable's name is a path, and not that of this layer's weight of the name: from a
 * build that failed it may have that already. */
static bool is_elsewhere(const ed_layer *layer, const ed_tensor *v, const char *name)
{
    if (!strchr(ed_variable_name(v), '/')) return false;
    ED_SCOPE;
    const char *path = ed_layer_path(layer), *its = ed_variable_name(v);
    const size_t size = path ? strlen(path) : 0;
    const bool same = path && !strncmp(its, path, size) && its[size] == '/';
    return !same || strcmp(its + size + 1, name) != 0;
}

/* Notes the part at the top of the stack, once. */
static void note(lua_State *L, int found, const void *part, const char *name)
{
    if (lua_rawgetp(L, found, part) == LUA_TNIL) {
        const lua_Integer n = (lua_Integer)lua_rawlen(L, found);
        lua_pushboolean(L, true);
        lua_rawsetp(L, found, part);
        lua_pushvalue(L, -2);
        lua_rawseti(L, found, n + 1);
        lua_pushstring(L, name);
        lua_rawseti(L, found, n + 2);
    }
    lua_pop(L, 1);
}

static void find_layer(lua_State *L, const ed_layer *layer, const ed_layer *part, int found)
{
    if (!ed_layer_parent(part) && !is_above(layer, part)) note(L, found, part, ed_layer_name(part));
}

static void find_variable(lua_State *L, const ed_layer *layer, const char *name, ed_tensor *v,
                          int found)
{
    if (ed_is_variable(v) && !is_weight(layer, v) && !is_elsewhere(layer, v, name))
        note(L, found, v, name);
}

/* ---- Tables of them -------------------------------------------------------------------------- */

enum { DEEPEST = 1000 }; /* values on the stack, several for each table within another */

static void find(lua_State *L, const ed_layer *layer, const char *name, int found);

/* The value at the top of the stack, in a table that is the field `name`. */
static void find_entry(lua_State *L, const ed_layer *layer, const char *name, const char *key,
                       int found)
{
    if (lua_type(L, -1) != LUA_TTABLE && lua_type(L, -1) != LUA_TUSERDATA) return;
    if (lua_gettop(L) - found > DEEPEST) handle_fail(L, "%s: tables are too deep in others", name);
    lua_pushfstring(L, "%s_%s", name, key);
    lua_insert(L, -2);
    find(L, layer, lua_tostring(L, -2), found);
    lua_remove(L, -2);
}

/* What the table at the top of the stack has in its places, then what it has under names, in their
 * order. */
static void find_table(lua_State *L, const ed_layer *layer, const char *name, int found)
{
    const int at = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, at, i) != LUA_TNIL; i++) {
        char key[24];
        snprintf(key, sizeof key, "%lld", (long long)i);
        find_entry(L, layer, name, key, found);
        lua_settop(L, at);
    }
    lua_Integer n;
    const char **names = objects_entries(L, at, NULL, &n);
    const int values = lua_gettop(L);
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, values, i + 1);
        find_entry(L, layer, name, names[i], found);
        lua_settop(L, values);
    }
    lua_settop(L, at);
}

/* The value at the top of the stack; a table is looked through once. */
static void find(lua_State *L, const ed_layer *layer, const char *name, int found)
{
    luaL_checkstack(L, 16, NULL);
    const ed_layer *part = handle_at(L, -1, HANDLE_LAYER);
    ed_tensor *t = handle_at(L, -1, HANDLE_TENSOR);
    if (lua_type(L, -1) == LUA_TUSERDATA) handle_leave_scope(L, -1);
    if (part) find_layer(L, layer, part, found);
    if (t) find_variable(L, layer, name, t, found);
    if (lua_type(L, -1) != LUA_TTABLE) return;
    lua_pushvalue(L, -1);
    if (lua_rawget(L, found) != LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushboolean(L, true);
    lua_rawset(L, found);
    find_table(L, layer, name, found);
}

/* ---- Taking them in -------------------------------------------------------------------------- */

/* Whether the name is new among those of its kind, "layer" or "weight", in the table; from now on
 * it is not. */
static bool claim(lua_State *L, int names, const char *kind, const char *name)
{
    lua_pushfstring(L, "%s/%s", kind, name);
    lua_pushvalue(L, -1);
    const bool fresh = lua_rawget(L, names) == LUA_TNIL;
    lua_pop(L, 1);
    lua_pushboolean(L, true);
    lua_rawset(L, names);
    return fresh;
}

/* The name that a layer without one is going to get: dense, dense_1, dense_2. Where to go on
 * stands in the table under the kind's name. */
static void claim_free(lua_State *L, int names, const char *kind)
{
    lua_getfield(L, names, kind);
    lua_Integer number = lua_tointeger(L, -1);
    bool fresh = !number && claim(L, names, "layer", kind);
    while (!fresh) {
        lua_pushfstring(L, "%s_%I", kind, (LUAI_UACINT)++number);
        fresh = claim(L, names, "layer", lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pushinteger(L, number);
    lua_setfield(L, names, kind);
    lua_pop(L, 1);
}

/* An error that begins with the layer's path; always false. */
static bool refuse(const ed_layer *layer, const char *format, ...)
{
    ED_SCOPE;
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const char *path = ed_layer_path(layer);
    return ed_fail(ED_INVALID_ARGUMENT, "%s: %s", path ? path : "layer", message), false;
}

/* The part at the top of the stack but one, whose name is at the top. False with an error. */
static bool check_name(lua_State *L, const ed_layer *layer, int names)
{
    const ed_layer *part = handle_at(L, -2, HANDLE_LAYER);
    const char *name = lua_tostring(L, -1);
    if (part && !ed_layer_is_named(part))
        return claim_free(L, names, ed_layer_kind(part)->kind.name), true;
    if (!*name || strchr(name, '/'))
        return refuse(layer, "'%s' is no name: empty, or with a slash in it", name);
    if (claim(L, names, part ? "layer" : "weight", name)) return true;
    return refuse(layer, "there are two %s of the name %s", part ? "layers" : "weights", name);
}

static void check_names(lua_State *L, const ed_layer *layer, int found)
{
    lua_newtable(L);
    const int names = lua_gettop(L);
    for (int64_t i = 0; i < ed_layer_child_count(layer); i++)
        claim(L, names, "layer", ed_layer_name(ed_layer_child(layer, i)));
    for (int64_t i = 0; i < ed_layer_weight_count(layer); i++)
        claim(L, names, "weight", strrchr(ed_variable_name(ed_layer_weight(layer, i)), '/') + 1);
    for (lua_Integer i = 1; lua_rawgeti(L, found, i) != LUA_TNIL; i += 2) {
        lua_rawgeti(L, found, i + 1);
        if (!check_name(L, layer, names)) handle_raise(L);
        lua_settop(L, names);
    }
    lua_settop(L, names - 1);
}

/* What was found becomes the layer's. */
static void take(lua_State *L, ed_layer *layer, int found)
{
    const int top = lua_gettop(L);
    if (!lua_rawlen(L, found)) return;
    check_names(L, layer, found);
    for (lua_Integer i = 1; lua_rawgeti(L, found, i) != LUA_TNIL; i += 2) {
        lua_rawgeti(L, found, i + 1);
        ed_layer *part = handle_at(L, -2, HANDLE_LAYER);
        ed_tensor *v = handle_at(L, -2, HANDLE_TENSOR);
        if (part && !identity_add_child(L, layer, part, -2)) handle_raise(L);
        if (v && !ed_layer_adopt_weight(layer, lua_tostring(L, -1), v)) handle_raise(L);
        lua_settop(L, top);
    }
    lua_settop(L, top);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

void fields_take(lua_State *L, ed_layer *layer, const char *name)
{
    lua_newtable(L);
    lua_insert(L, -2);
    const int found = lua_gettop(L) - 1;
    find(L, layer, name, found);
    take(L, layer, found);
    lua_remove(L, found);
}

void fields_collect(lua_State *L, ed_layer *layer)
{
    const int top = lua_gettop(L), found = top + 1;
    lua_newtable(L);
    push_fields(L, layer);
    lua_Integer n;
    const char **names = objects_entries(L, -1, NULL, &n);
    const int values = lua_gettop(L);
    for (lua_Integer i = 0; i < n; i++) {
        if (lua_rawgeti(L, values, i + 1) == LUA_TTABLE) find(L, layer, names[i], found);
        lua_settop(L, values);
    }
    take(L, layer, found);
    lua_settop(L, top);
}

void fields_check(lua_State *L, ed_layer *layer, const char *name)
{
    const int value = lua_gettop(L);
    push_fields(L, layer);
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    const ed_layer *child = handle_at(L, -1, HANDLE_LAYER);
    const ed_tensor *v = handle_at(L, -1, HANDLE_TENSOR);
    const bool kept = (child && ed_layer_parent(child) == layer) || (v && is_weight(layer, v));
    const bool same = (child && handle_at(L, value, HANDLE_LAYER) == child) ||
                      (v && handle_at(L, value, HANDLE_TENSOR) == v);
    if (kept && !same)
        handle_fail(L, "%s: '%s' is a part of it already, and can't be replaced",
                    ed_layer_name(layer), name);
    lua_settop(L, value);
}
