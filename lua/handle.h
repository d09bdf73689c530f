/*
 * Eddy's objects in Lua: a userdata is one reference. How every binding is written:
 *
 *     look at the arguments, which may raise Lua errors: nothing is held yet
 *     make the userdata of the result, empty: this may raise too (memory)
 *     open a scope, call Eddy, put the result into the userdata, close the scope
 *     if that failed, raise Eddy's error as Lua's
 *
 * So no Lua error ever passes through a C frame that holds anything. A Lua function that Eddy calls
 * back runs protected, and its error becomes Eddy's.
 */
#ifndef EDDY_LUA_HANDLE_H
#define EDDY_LUA_HANDLE_H

#include "eddy.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

typedef enum handle_kind {
    HANDLE_TENSOR, /* variables too */
    HANDLE_TAPE,
    HANDLE_LAYER,
    HANDLE_OPTIMIZER,
    HANDLE_METRIC,
    HANDLE_GENERATOR,
    HANDLE_DATASET,
    HANDLE_CHECKPOINT,
    HANDLE_RESTORATION,
    HANDLE_MANAGER,
    HANDLE_ARCHIVE,
    HANDLE_TRACKABLE, /* a table whose values a checkpoint keeps */
    HANDLE_KINDS
} handle_kind;

typedef struct handle {
    const void *mark; /* tells our userdata from others' */
    handle_kind kind;
    bool closed;  /* though the object may still be there: handle.c, close_handle */
    void *object; /* retained; NULL once released */
} handle;

/* "tensor" and so on. */
const char *handle_kind_name(handle_kind kind);

/* Makes the metatables. */
void handle_open(lua_State *L);

/* A new empty userdata of the kind on the stack. May raise. */
handle *handle_new(lua_State *L, handle_kind kind);

/* Puts a result into it, retained; reports a tensor's bytes to Lua's collector. Raises nothing. */
void handle_put(handle *h, void *object);

/* What handle_put owes the collector is paid here, at the end of a binding: may run finalizers. */
void handle_collect(lua_State *L);

/* The object at a place of the stack: NULL if it is none of that kind / raises. A closed one
 * raises in handle_check and is NULL in handle_at. */
void *handle_at(lua_State *L, int at, handle_kind kind);
void *handle_check(lua_State *L, int at, handle_kind kind);

/* The object, held by the open scope: for calls during which Lua code may run, which could close
 * the handle. NULL with an error without memory, and for NULL. */
void *handle_hold(void *object);

/* Pushes a text, for which memory may be refused: false with an Eddy error instead of a Lua one.
 * May be called while a scope is open, and needs two free places. */
bool handle_push_text(lua_State *L, const char *s);

/* Raises Eddy's kept error with the place in the Lua program, and forgets it. */
int handle_raise(lua_State *L);

/* A result: 1, or the error. For the end of a binding. */
static inline int handle_return(lua_State *L, bool fine)
{
    if (!fine) return handle_raise(L);
    handle_collect(L);
    return 1;
}

/* ---- Scopes of Lua (ed.scope) ---------------------------------------------------------------- */

int handle_scope(lua_State *L);

#endif
