/*
 * The module `eddy` for Lua, and the program eddy. Where what is:
 *
 *     what everything stands on
 *       handle.c            userdata, scopes, errors: this header
 *       call.c              Lua functions that Eddy calls back
 *       garbage.c           when Lua's collector has to run, and figures of memory
 *       convert.c           Lua values as tensors and options, and back
 *       tables.c            nested tables of numbers as tensors
 *       promotion.c         which operands become floats
 *       maker.c             constructors: functions that are described by a table of fields
 *       objects.c           what objects of all kinds share
 *     what the module has
 *       module.c            luaopen_eddy, which opens all of these
 *       prelude.lua         what is best said in Lua
 *       ops.c               every op of Eddy's table
 *       functions.c         functions that Eddy makes of ops
 *       tensor.c            tensors and variables: operators, properties, methods
 *       indexing.c          x[...]
 *       autodiff.c          tapes, custom gradients
 *       layers.c            layers
 *       layer_identity.c      one userdata for one layer
 *       custom_layers.c       layers written in Lua
 *       layer_fields.c        which of their fields are children and weights
 *       print.c             tensors as strings
 *       optim.c metrics.c random.c data.c files.c checkpoints.c trackables.c
 *       plot.c, plot.lua    plots and PNG files
 *       help.c, help.lua    help of what the definitions say; help.txt has the rest
 *       suggest.c, suggest.lua  what to say of names that are not there
 *     the program
 *       repl/               scripts and the prompt: repl/repl.h
 *
 * Only Eddy's public headers are included: whatever this binding can do, one for another language
 * can.
 *
 * Eddy's objects in Lua: a userdata is one reference. How every binding is written:
 *
 *     look at the arguments, which may raise Lua errors: nothing is held yet
 *     make the userdata of the result, empty: this may raise too (memory)
 *     binding_open, call Eddy, binding_finish: the result goes into the userdata, or Eddy's error
 *     is raised as Lua's
 *
 * So no Lua error ever passes through a C frame that holds anything. A Lua function that Eddy calls
 * back runs protected (call.h), and its error becomes Eddy's. An object that a binding works with
 * stays: what a finalizer closes meanwhile is not released yet, and what a callback could close is
 * held by ed_scope_hold.
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
    HANDLE_INITIALIZER,
    HANDLE_GENERATOR,
    HANDLE_DATASET,
    HANDLE_CHECKPOINT,
    HANDLE_RESTORATION,
    HANDLE_MANAGER,
    HANDLE_ARCHIVE,
    HANDLE_TRACKABLE, /* a table whose values a checkpoint keeps */
    HANDLE_LIST,      /* of tensors, on the way to a table of them; no program sees it */
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

/* The same by the kind's metatable, at a place of the stack or an upvalue: looking it up costs as
 * much as making the userdata. */
handle *handle_new_with(lua_State *L, handle_kind kind, int metatable);
void handle_push_metatable(lua_State *L, handle_kind kind);

/* Puts a result into it, retained. Raises nothing. */
void handle_put(handle *h, void *object);

/* The object at a place of the stack: NULL if it is none of that kind / raises. A closed one
 * raises in handle_check and is NULL in handle_at. */
void *handle_at(lua_State *L, int at, handle_kind kind);
void *handle_check(lua_State *L, int at, handle_kind kind);

/* Puts a new table with weak keys ("k") or values ("v") into the registry. */
void handle_new_weak(lua_State *L, const char *mode, const void *key);

/* The name of its kind; NULL for what is none of ours. */
const char *handle_name(lua_State *L, int at);

/* Pushes a text, for which memory may be refused: false with an Eddy error instead of a Lua one.
 * May be called while a scope is open, and needs two free places. */
bool handle_push_text(lua_State *L, const char *s);

/* Raises Eddy's kept error with the place in the Lua program, and forgets it. */
int handle_raise(lua_State *L);

/* As luaL_error, with the place in the Lua program, which may be further out than the caller. */
int handle_fail(lua_State *L, const char *format, ...);

/* A result at the top of the stack: 1, or the error. For the end of a binding. */
static inline int handle_return(lua_State *L, bool fine)
{
    return fine ? 1 : handle_raise(L);
}

/* ---- Calls of Eddy --------------------------------------------------------------------------- */

/* A scope in which a binding calls Eddy. Meanwhile callbacks run in the binding's Lua thread, and
 * messages count axes from 1. Nothing may raise before it is closed. */
typedef struct binding {
    ed_scope scope;
    lua_State *outer;
    int first;
} binding;

binding binding_open(lua_State *L);
void binding_close(binding *b);

/* Puts the result into the handle at the top of the stack and closes the binding: 1, or Eddy's
 * error if there is none. */
int binding_finish(lua_State *L, binding *b, handle *h, void *object);

/* The same for a text, which belongs to the scope: nil for NULL without an error. Needs two free
 * places. */
int binding_finish_text(lua_State *L, binding *b, const char *s);

/* The Lua thread whose binding calls Eddy; NULL when C does. */
lua_State *binding_thread(void);

/* ---- Scopes of Lua (ed.scope, which prelude.lua makes of it) --------------------------------- */

/* Pushes a set in which the Lua thread's handles are from now on, until it is closed: then those
 * left in it are closed. Its field `outer` is the set before. */
int handle_scope(lua_State *L);

/* Takes the value at a place of the stack out of the set of its scope: Lua collects it. */
void handle_leave_scope(lua_State *L, int at);

/* ---- garbage.c ------------------------------------------------------------------------------- */

/* Collects garbage once much has been made since the last time; may run finalizers. */
void garbage_collect(lua_State *L);

/* Whether handles are noted with the line that made them / notes the one at
 * the top of the stack. */
extern __thread bool garbage_traced;
void garbage_note(lua_State *L);

/* Pushes "script.lua:5", the innermost place that is not inside the module's own Lua; false and
 * nothing without one. */
bool handle_push_place(lua_State *L);

/* Puts memory, memory_trace and memory_lines into the module at the top of the stack. */
void garbage_open(lua_State *L);

#endif
