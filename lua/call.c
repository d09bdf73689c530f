#include "lua/call.h"
#include <string.h>

lua_hold *call_hold(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    lua_hold *hold = lua_newuserdatauv(L, sizeof *hold, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    hold->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    lua_pushvalue(L, at);
    lua_setiuservalue(L, -2, 1);
    hold->reference = luaL_ref(L, LUA_REGISTRYINDEX);
    return hold;
}

void call_release(void *user)
{
    lua_hold *hold = user;
    luaL_unref(hold->L, LUA_REGISTRYINDEX, hold->reference);
}

bool call_protected(lua_State *L, int (*function)(lua_State *L), void *context)
{
    if (!lua_checkstack(L, 4)) return ed_fail(ED_OUT_OF_MEMORY, "Lua's stack is full"), false;
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, context);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK) return true;
    const char *message = lua_tostring(L, -1);
    ed_fail(ED_INVALID_ARGUMENT, "%s", message ? message : "a Lua error that is no text");
    lua_pop(L, 1);
    return false;
}
