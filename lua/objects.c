#include "lua/objects.h"
#include "lua/arguments.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of kinds that have methods only. */
static int get_method(lua_State *L)
{
    return objects_method(L) ? 1 : objects_no_field(L);
}

void objects_methods(lua_State *L, handle_kind kind, const luaL_Reg *methods,
                     const luaL_Reg *metamethods, lua_CFunction index)
{
    char name[32];
    snprintf(name, sizeof name, "eddy.%s", handle_kind_name(kind));
    luaL_getmetatable(L, name);
    if (metamethods) luaL_setfuncs(L, metamethods, 0);
    lua_getfield(L, -1, "__index");
    arguments_set(L, handle_kind_name(kind), methods);
    lua_pushcclosure(L, index ? index : get_method, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void objects_push_tensor_methods(lua_State *L)
{
    luaL_getmetatable(L, "eddy.tensor");
    lua_getfield(L, -1, "__index");
    lua_getupvalue(L, -1, 1);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

bool objects_method(lua_State *L)
{
    if (lua_type(L, 2) != LUA_TSTRING) return false;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return true;
    lua_pop(L, 1);
    return false;
}

int objects_no_field(lua_State *L)
{
    const char *key = luaL_tolstring(L, 2, NULL);
    const char *suggestion = suggest_push(L, handle_name(L, 1), 2, 0);
    return handle_fail(L, "%s has no field or method '%s'%s", convert_kind(L, 1).s, key,
                       suggestion);
}

/* ---- Entries by name ------------------------------------------------------------------------- */

static void check_name(lua_State *L, int at, const char *who)
{
    if (lua_type(L, at) != LUA_TSTRING)
        handle_fail(L, "%s: keys must be strings, got %s", who, convert_kind(L, at).s);
    if (!convert_is_plain(L, at))
        handle_fail(L, "%s: the name '%s' contains a zero byte", who, lua_tostring(L, at));
}

/* Pushes a table of the keys that are strings. */
static lua_Integer push_names(lua_State *L, int at, const char *who)
{
    lua_Integer n = 0;
    lua_newtable(L);
    const int names = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        if (who) check_name(L, -2, who);
        if (lua_type(L, -2) != LUA_TSTRING) continue;
        lua_pushvalue(L, -2);
        lua_rawseti(L, names, ++n);
    }
    return n;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **objects_entries(lua_State *L, int at, const char *who, lua_Integer *count)
{
    at = lua_absindex(L, at);
    luaL_checkstack(L, 8, NULL);
    const lua_Integer n = push_names(L, at, who);
    const int keys = lua_gettop(L);
    const char **names = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *names, 0);
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, keys, i + 1);
        names[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    qsort(names, (size_t)n, sizeof *names, by_text);
    lua_createtable(L, (int)(n < 1 << 16 ? n : 1 << 16), 0);
    for (lua_Integer i = 0; i < n; i++) {
        lua_pushstring(L, names[i]);
        lua_rawget(L, at);
        lua_rawseti(L, -2, i + 1);
    }
    *count = n;
    return names;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

ed_list *objects_variables(lua_State *L, int at)
{
    ed_layer *layer = handle_at(L, at, HANDLE_LAYER);
    ed_tensor *one = handle_at(L, at, HANDLE_TENSOR);
    if (layer) return ed_layer_trainable_variables(layer);
    return one ? ed_list_of_one(one) : convert_list(L, at);
}

int objects_finish_list(lua_State *L, binding *b, handle *h, void *list)
{
    if (binding_finish(L, b, h, list)) convert_push_list(L, h->object);
    return 1;
}
