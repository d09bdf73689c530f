/* Lua functions that Eddy calls back. */
#ifndef EDDY_LUA_CALL_H
#define EDDY_LUA_CALL_H

#include "lua/handle.h"

/* A Lua value that Eddy holds: a function, or a table of them. Calls run in the main thread's
 * stack. */
typedef struct lua_hold {
    lua_State *L;
    int reference;
} lua_hold;

/* Holds the value at a place of the stack; may raise. The hold is memory of Lua's (a userdata that
 * the registry keeps) until call_release. */
lua_hold *call_hold(lua_State *L, int at);
void call_release(void *hold);

/* What a protected call does: everything in it may raise; an error becomes Eddy's, with the Lua
 * message. false then. The stack is as before. */
bool call_protected(lua_State *L, int (*function)(lua_State *L), void *context);

#endif
