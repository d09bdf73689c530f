#include "lua/custom_layers.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Which of a layer's fields belong to it, as in Keras: layers become children, variables become
 * weights with the field's name (self.shift = ed.variable(0.0) is "shift"), also those in tables
 * (self.blocks[2] is "blocks_2", in a checkpoint "blocks/1", as in Keras). A layer that was named
 * keeps its name. A child or weight of another layer does not change its owner:
 * layers may share it. Tables are searched when they are assigned to a field, and again after init,
 * before build and after build.
 *
 * A field that holds a child or weight can't get another value.
 *
 * All parts are first collected in a table "found": part 1, its field, part 2, its field ..., as
 * checkpoints have it ("blocks/1"), and as
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

/* Pushes the name of the field's part, "blocks_2" for "blocks/1"; returns it. */
static const char *push_name(lua_State *L, const char *field)
{
    luaL_Buffer name;
    luaL_buffinit(L, &name);
    while (*field) {
        const size_t size = strcspn(field, "/");
        char number[24];
        if (strspn(field, "0123456789") == size && size < 18) {
            snprintf(number, sizeof number, "%lld", strtoll(field, NULL, 10) + 1);
            luaL_addstring(&name, number);
        } else
            luaL_addlstring(&name, field, size);
        field += size;
        if (*field) luaL_addchar(&name, '_'), field++;
    }
    luaL_pushresult(&name);
    return lua_tostring(L, -1);
}

/* Whether the variable's name is a path, other than that of this layer's weight of the name,
 * which it may have from a build that failed. */
static bool is_elsewhere(lua_State *L, const ed_layer *layer, const ed_tensor *v, const char *field)
{
    if (!strchr(ed_variable_name(v), '/')) return false;
    const char *name = push_name(L, field);
    ED_SCOPE;
    const char *path = ed_layer_path(layer), *its = ed_variable_name(v);
    const size_t size = path ? strlen(path) : 0;
    const bool same = path && !strncmp(its, path, size) && its[size] == '/';
    const bool elsewhere = !same || strcmp(its + size + 1, name) != 0;
    lua_pop(L, 1);
    return elsewhere;
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

static void find_layer(lua_State *L, const ed_layer *layer, const char *field, const ed_layer *part,
                       int found)
{
    if (!ed_layer_parent(part) && !is_above(layer, part)) note(L, found, part, field);
}

static void find_variable(lua_State *L, const ed_layer *layer, const char *name, ed_tensor *v,
                          int found)
{
    if (ed_is_variable(v) && !is_weight(layer, v) && !is_elsewhere(L, layer, v, name))
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
    ed_tensor *v = handle_at(L, -1, HANDLE_TENSOR);
    if ((!*key || strchr(key, '/')) && ((v && ed_is_variable(v)) || handle_at(L, -1, HANDLE_LAYER)))
        handle_fail(L, "%s: invalid name '%s_%s': it must not be empty or contain '/'",
                    ed_layer_name(layer), push_name(L, name), key);
    lua_pushfstring(L, "%s/%s", name, key);
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
        snprintf(key, sizeof key, "%lld", (long long)i - 1);
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
    if (part) find_layer(L, layer, name, part, found);
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

/* Checks the part below the top of the stack, whose field is at the top; false with an error. */
static bool check_name(lua_State *L, const ed_layer *layer, int names)
{
    const ed_layer *part = handle_at(L, -2, HANDLE_LAYER);
    const char *name = push_name(L, lua_tostring(L, -1));
    if (part && ed_layer_is_named(part)) name = ed_layer_name(part);
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

static bool add_variable(ed_layer *layer, const char *field, ed_tensor *v)
{
    const int base = ed_set_index_base(1);
    const bool added = ed_layer_add_field(layer, field, v);
    ed_set_index_base(base);
    return added;
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
        const char *field = lua_tostring(L, -1);
        if (part && !identity_add_child(L, layer, part, field, -2)) handle_raise(L);
        if (v && !add_variable(layer, field, v)) handle_raise(L);
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
