/* C's names in what the library says, as Lua has them. */
#ifndef EDDY_LUA_WORDING_H
#define EDDY_LUA_WORDING_H

#include "lua/handle.h"

/* The module, at that index, is where names are looked up. */
void wording_open(lua_State *L, int module);

/* Pushes a message or a line of documentation with Lua's names in place of C's. May raise. */
void wording_push(lua_State *L, const char *s);

#endif
