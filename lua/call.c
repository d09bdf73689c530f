#include "lua/call.h"
#include <string.h>

/* A Lua state may be closed while C still holds layers or tapes that call back into it. So all
 * holds share one anchor in C's memory, which is cleared when the state is closed. */
typedef struct anchor {
    lua_State *L; /* the main thread; NULL once the state is closed */
    int holds;
} anchor;

struct call_hold {
    anchor *anchor;
    int reference;
};

/* Keys of the registry: the anchor; the value that a callback raised, and its traceback; the
 * message that Eddy made of it. */
static const char anchor_key, error_key, traceback_key, raised_key;

static const char closed[] = "the Lua state was closed";

static void let_go(anchor *a)
{
    if (!a->L && !a->holds) ed_memory_free(a);
}

static int end(lua_State *L)
{
    anchor **box = lua_touserdata(L, 1);
    anchor *a = *box;
    *box = NULL;
    if (!a) return 0;
    a->L = NULL;
    let_go(a);
    return 0;
}

call_hold *call_hold_new(lua_State *L, int at)
{
    lua_pushvalue(L, at);
    const int reference = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &anchor_key);
    anchor *a = *(anchor **)lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (!a) ed_fail(ED_FAILED_PRECONDITION, "%s", closed);
    call_hold *hold = a ? ed_memory_alloc(sizeof *hold) : NULL;
    if (!hold) {
        luaL_unref(L, LUA_REGISTRYINDEX, reference);
        handle_raise(L);
    }
    *hold = (call_hold){a, reference};
    a->holds++;
    return hold;
}

void call_release(void *user)
{
    call_hold *hold = user;
    if (!hold) return;
    anchor *a = hold->anchor;
    if (a->L) luaL_unref(a->L, LUA_REGISTRYINDEX, hold->reference);
    a->holds--;
    ed_memory_free(hold);
    let_go(a);
}

void call_push(lua_State *L, const call_hold *hold)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, hold->reference);
}

/* ---- Calls, and their errors ----------------------------------------------------------------- */

/* The keys exist from the beginning: setting them allocates nothing. */
static void forget(lua_State *L, const char *key)
{
    lua_pushboolean(L, false);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static const char no_text[] = "a Lua error that is not a string";

/* The value as a string for Eddy's message, which has the first SHOWN bytes of it. */
enum { SHOWN = 800 };
static const char *message_of(lua_State *L, int at)
{
    return lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : no_text;
}

static int explain(lua_State *L)
{
    lua_settop(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &traceback_key);
    if (!lua_isstring(L, -1)) { /* the innermost of nested callbacks */
        luaL_traceback(L, L, NULL, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &traceback_key);
    }
    lua_settop(L, 1);
    return 1;
}

/* Pops the value at the top of the stack. */
static void keep_error(lua_State *L)
{
    ed_fail(ED_INVALID_ARGUMENT, "%.*s", SHOWN, message_of(L, -1));
    lua_rawsetp(L, LUA_REGISTRYINDEX, &error_key);
}

bool call_protected(const call_hold *hold, int (*function)(lua_State *L), void *context)
{
    lua_State *L = hold->anchor->L;
    if (!L) return ed_fail(ED_FAILED_PRECONDITION, "%s", closed), false;
    lua_State *running =
        binding_thread(); /* of this state, or of another that has the object too */
    if (running && lua_topointer(running, LUA_REGISTRYINDEX) == lua_topointer(L, LUA_REGISTRYINDEX))
        L = running;
    if (!lua_checkstack(L, 4)) return ed_fail(ED_OUT_OF_MEMORY, "Lua's stack is full"), false;
    const int top = lua_gettop(L);
    forget(L, &traceback_key);
    lua_pushcfunction(L, explain);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, context);
    const bool fine = lua_pcall(L, 1, 0, top + 1) == LUA_OK;
    if (!fine) keep_error(L);
    lua_settop(L, top);
    return fine;
}

/* Whether the message begins with the string, or with what is shown of it. */
static bool begins(const char *message, const char *text)
{
    const size_t n = strlen(text);
    return !strncmp(message, text, n < SHOWN ? n : SHOWN);
}

bool call_push_error(lua_State *L, const char *message)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &error_key) == LUA_TBOOLEAN) return lua_pop(L, 1), false;
    forget(L, &error_key);
    if (!begins(message, message_of(L, -1))) return lua_pop(L, 1), false;
    if (lua_type(L, -1) == LUA_TSTRING &&
        strlen(message) > lua_rawlen(L, -1)) { /* the message has more */
        lua_pop(L, 1);
        lua_pushstring(L, message);
    }
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_key);
    return true;
}

/* Whether the value at `at` is the one at the top, or that string after positions, as
 * coroutine.wrap adds one. */
static bool came_of(lua_State *L, int at)
{
    if (lua_type(L, at) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
        return lua_rawequal(L, at, -1);
    const size_t size = lua_rawlen(L, at), end = lua_rawlen(L, -1);
    return size >= end && !memcmp(lua_tostring(L, at) + size - end, lua_tostring(L, -1), end);
}

void call_push_traceback(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &raised_key);
    const bool its = came_of(L, at);
    lua_pop(L, 1);
    if (!its) {
        lua_pushnil(L);
        return;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &traceback_key);
    forget(L, &traceback_key);
    forget(L, &raised_key);
}

void call_open(lua_State *L)
{
    anchor **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    *box = ed_memory_alloc(sizeof **box);
    if (!*box) handle_raise(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    (*box)->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &anchor_key);
    forget(L, &error_key);
    forget(L, &traceback_key);
    forget(L, &raised_key);
}
