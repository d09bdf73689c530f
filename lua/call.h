/* Lua functions that Eddy calls back. */
#ifndef EDDY_LUA_CALL_H
#define EDDY_LUA_CALL_H

#include "lua/handle.h"

/* A Lua value that Eddy holds: a function, or a table of them. It may outlive the Lua state. */
typedef struct call_hold call_hold;

/* Holds the value at an index of the stack until call_release; raises if memory is short. */
call_hold *call_hold_new(lua_State *L, int at);
void call_release(void *hold);

/* Pushes the value. */
void call_push(lua_State *L, const call_hold *hold);

/*
 * Calls the C function, in which everything may raise, with the context as light userdata: in the
 * Lua thread whose binding runs, or in the main thread if C or another Lua state called Eddy. false
 * if it raised: Eddy then has an error, from which handle_raise later raises the same Lua value.
 */
bool call_protected(const call_hold *hold, int (*function)(lua_State *L), void *context);

/* Pushes the Lua value that caused Eddy's error of this message, if there is one; a string with
 * what Eddy added to it. */
bool call_push_error(lua_State *L, const char *message);

/* Pushes the traceback of the callback that raised the error at an index of the stack, or nil;
 * forgets it. */
void call_push_traceback(lua_State *L, int at);

void call_open(lua_State *L);

#endif
