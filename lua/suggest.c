#include "lua/objects.h"

/* A name that does not exist is an error with suggestions: in the module and its tables, so that
 * ed.nrom is not a nil that is called later, and in objects. suggest.lua has the words.
 * rawget(ed, name) gives nil without an error. */

__asm__(".section .rodata\n"
        "eddy_suggest:\n"
        ".incbin \"lua/suggest.lua\"\n"
        "eddy_suggest_end:\n"
        ".previous\n");
extern const char eddy_suggest[] __attribute__((visibility("hidden")));
extern const char eddy_suggest_end[] __attribute__((visibility("hidden")));

/* Keys of the registry: the module, the function that names the parts of objects, suggest.lua's
 * function. */
static const char module_key, names_key, suggest_key;

/* suggest(where, name, table): may raise. */
static int suggest(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &suggest_key) != LUA_TFUNCTION) {
        const size_t size = (size_t)(eddy_suggest_end - eddy_suggest);
        if (luaL_loadbufferx(L, eddy_suggest, size, "=eddy", "t") != LUA_OK) return lua_error(L);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &module_key);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key);
        lua_call(L, 2, 1);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &suggest_key);
    }
    lua_insert(L, 1);
    lua_settop(L, 4);
    lua_call(L, 3, 1);
    return 1;
}

const char *suggest_push(lua_State *L, const char *where, int name, int table)
{
    name = lua_absindex(L, name);
    luaL_checkstack(L, 8, NULL);
    lua_pushcfunction(L, suggest);
    lua_pushstring(L, where);
    lua_pushvalue(L, name);
    lua_pushvalue(L, table ? table : name);
    if (lua_type(L, name) == LUA_TSTRING && lua_pcall(L, 3, 1, 0) == LUA_OK && lua_isstring(L, -1))
        return lua_tostring(L, -1);
    lua_pushliteral(L, ""); /* no memory, or a program changed the module: no suggestion */
    return lua_tostring(L, -1);
}

/* The __index of the module and its tables, whose name is the upvalue. */
static int no_name(lua_State *L)
{
    const char *where = lua_tostring(L, lua_upvalueindex(1));
    const char *key = luaL_tolstring(L, 2, NULL);
    return handle_fail(L, "there is no %s.%s%s", where, key, suggest_push(L, where, 2, 1));
}

static void guard(lua_State *L, int table, const char *where)
{
    lua_createtable(L, 0, 1);
    lua_pushstring(L, where);
    lua_pushcclosure(L, no_name, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, table);
}

void suggest_open(lua_State *L, int module)
{
    lua_pushvalue(L, module);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_key);
    lua_getfield(L, module, "names");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &names_key);
    guard(L, module, "ed");
    for (lua_pushnil(L); lua_next(L, module); lua_pop(L, 1)) {
        if (lua_type(L, -1) != LUA_TTABLE) continue;
        lua_pushfstring(L, "ed.%s", lua_tostring(L, -2));
        guard(L, lua_gettop(L) - 1, lua_tostring(L, -1));
        lua_pop(L, 1);
    }
}
