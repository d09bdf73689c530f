#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>

int luaopen_eddy(lua_State *L);

/* eddy script.lua args...: a Lua with the module loaded as ed. */
int main(int argc, char **argv)
{
    lua_State *L = luaL_newstate();
    if (!L) return fprintf(stderr, "eddy: no memory\n"), 1;
    luaL_openlibs(L);
    luaL_requiref(L, "eddy", luaopen_eddy, 0);
    lua_setglobal(L, "ed");
    bool fine = argc > 1 && luaL_dofile(L, argv[1]) == LUA_OK;
    if (!fine) fprintf(stderr, "eddy: %s\n", argc > 1 ? lua_tostring(L, -1) : "no script");
    lua_close(L);
    return !fine;
}
