/*
 * Functions refuse more arguments than they have, before anything else: Lua would drop them. How
 * many a function has follows from its signature in help.txt.
 */
#ifndef EDDY_LUA_ARGUMENTS_H
#define EDDY_LUA_ARGUMENTS_H

#include "lua/handle.h"

/* Reads the signatures of help.txt, for arguments_set while the module is opened. */
void arguments_open(lua_State *L, const char *text, const char *end);

/* Forgets them. */
void arguments_close(lua_State *L);

/*
 * As luaL_setfuncs, into the table at the top of the stack: functions of the module (NULL), or
 * methods of the kind, whose signatures are "kind:name". A function without a signature is an
 * error.
 */
void arguments_set(lua_State *L, const char *kind, const luaL_Reg *functions);

/* The same for one function of the module, which stays at the top of the stack. */
void arguments_push(lua_State *L, const char *name, lua_CFunction function);

/* For functions written in Lua: no_more(name, most, ...), given what the function got after its
 * `most` parameters, raises the same error unless that is nothing. */
int arguments_no_more(lua_State *L);

/* Raises that the function got so many arguments. */
int arguments_refuse(lua_State *L, const char *name, int given, int most);

#endif
