/* Tables within tables, with names or without: what a function takes as one list, and gives back
 * in the same shape. */
#ifndef EDDY_LUA_NESTED_H
#define EDDY_LUA_NESTED_H

#include "lua/handle.h"

/* Whether the value is a table with names or with tables in it: not a plain list. */
bool nested_is(lua_State *L, int at);

/*
 * Pushes a list of what the nested table at an index of the stack has besides tables, in the order
 * of its places and of its names, then a table of its shape, which has numbers of the list
 * instead. May raise: `who` begins the message.
 */
void nested_push(lua_State *L, int at, const char *who);

/* Replaces the nested table at an index of the stack by its list, and pushes the table of its
 * shape; a plain list, or another value, stays as it is: nil is pushed. May raise. */
void nested_take(lua_State *L, int at, const char *who);

/* Pushes a list of what another nested table has at the places of a table of nested_push, whatever
 * that is. May raise. */
void nested_follow(lua_State *L, int shape, int other, const char *who);

/* Puts the values of the list into a table of nested_push, instead of their numbers. May raise. */
void nested_fill(lua_State *L, int shape, int list);

/* For the prelude: flatten(table, who) gives the list and the table of the shape; unflatten(shape,
 * list) gives the shape filled. */
int nested_flatten(lua_State *L);
int nested_unflatten(lua_State *L);

#endif
