#include "lua/repl/repl.h"

/* --safe: for programs that are not trusted. They get the libraries that compute, and load takes
 * source text only: bytecode could do anything. */

/* load(chunk, name, mode, env) with mode "t", whatever mode is given. */
static int load_text(lua_State *L)
{
    int arguments = lua_gettop(L) < 3 ? 3 : lua_gettop(L);
    lua_settop(L, arguments);
    lua_pushliteral(L, "t");
    lua_replace(L, 3);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, arguments, LUA_MULTRET);
    return lua_gettop(L);
}

void safe_open(lua_State *L)
{
    static const luaL_Reg libraries[] = {
        {LUA_GNAME, luaopen_base},       {LUA_COLIBNAME, luaopen_coroutine},
        {LUA_TABLIBNAME, luaopen_table}, {LUA_STRLIBNAME, luaopen_string},
        {LUA_MATHLIBNAME, luaopen_math}, {LUA_UTF8LIBNAME, luaopen_utf8},
    };
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
        lua_pop(L, 1);
    }
    lua_getglobal(L, "load");
    lua_pushcclosure(L, load_text, 1);
    lua_setglobal(L, "load");
    static const char *const files[] = {"loadfile", "dofile"};
    for (int i = 0; i < 2; i++) {
        lua_pushnil(L);
        lua_setglobal(L, files[i]);
    }
}
