#include "lua/custom_layers.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * Which of a layer's fields belong to it, as in Keras: layers become children, variables become
 * weights with the field's name (self.shift = ed.variable(0.0) is "shift"), also those in tables
 * (self.blocks[2] is "blocks_2"). A child or weight of another layer does not change its owner:
 * layers may share it. Tables are searched when they are assigned to a field, and again after init,
 * before build and after build.
 *
 * A field that holds a child or weight can't get another value.
 *
 * All parts are first collected in a table "found": part 1, its name, part 2, its name ..., and as
 * keys the tables and parts that were visited. All names are checked before the first part is
 * added: a table that is refused leaves the layer unchanged.
 */

/* ---- One part -------------------------------------------------------------------------------- */

static void push_fields(lua_State *L, ed_layer *layer)
{
    identity_push(L, layer);
    identity_push_fields(L, -1);
    lua_replace(L, -2);
}

/* Whether it is the layer itself or one of those above it. */
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

/* Whether the variable's name is a path, other than that of this layer's weight of the name,
 * which it may have from a build that failed. */
static bool is_elsewhere(const ed_layer *layer, const ed_tensor *v, const char *name)
{
    if (!strchr(ed_variable_name(v), '/')) return false;
    ED_SCOPE;
    const char *path = ed_layer_path(layer), *its = ed_variable_name(v);
    const size_t size = path ? strlen(path) : 0;
    const bool same = path && !strncmp(its, path, size) && its[size] == '/';
    return !same || strcmp(its + size + 1, name) != 0;
}

/* Adds the part at the top of the stack to `found`, once. */
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

/* ---- Tables of parts ------------------------------------------------------------------------- */

enum { DEEPEST = 1000 }; /* values on the stack, several for each nested table */

static void find(lua_State *L, const ed_layer *layer, const char *name, int found);

/* The value at the top of the stack, in a table that is the field `name`. */
static void find_entry(lua_State *L, const ed_layer *layer, const char *name, const char *key,
                       int found)
{
    if (lua_type(L, -1) != LUA_TTABLE && lua_type(L, -1) != LUA_TUSERDATA) return;
    if (lua_gettop(L) - found > DEEPEST) handle_fail(L, "%s: tables are nested too deeply", name);
    lua_pushfstring(L, "%s_%s", name, key);
    lua_insert(L, -2);
    find(L, layer, lua_tostring(L, -2), found);
    lua_remove(L, -2);
}

/* The values of the table at the top of the stack at 1, 2, ..., then those under names, sorted. */
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

/* The value at the top of the stack; each table is searched once. */
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

/* ---- Adding them ----------------------------------------------------------------------------- */

/* Whether the name is new among those of its kind, "layer" or "weight", in the table; adds it. */
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

/* The name that a layer without one is going to get: dense, dense_1, dense_2. The table has the
 * next number under the kind's name. */
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

/* Keeps an error that begins with the layer's path; returns false. */
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

/* Checks the part below the top of the stack, whose name is at the top; false with an error. */
static bool check_name(lua_State *L, const ed_layer *layer, int names)
{
    const ed_layer *part = handle_at(L, -2, HANDLE_LAYER);
    const char *name = lua_tostring(L, -1);
    if (part && !ed_layer_is_named(part))
        return claim_free(L, names, ed_layer_kind(part)->kind.name), true;
    if (!*name || strchr(name, '/'))
        return refuse(layer, "invalid name '%s': it must not be empty or contain '/'", name);
    if (claim(L, names, part ? "layer" : "weight", name)) return true;
    return refuse(layer, "two %s are named %s", part ? "layers" : "weights", name);
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

/* Adds the parts that were found to the layer. */
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
        handle_fail(L, "%s: the field '%s' holds a child or weight and can't be changed",
                    ed_layer_name(layer), name);
    lua_settop(L, value);
}
