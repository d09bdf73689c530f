#include "lua/handle.h"
#include "tensor/core.h"
#include <stdio.h>
#include <string.h>

static const char mark;

static const char *const names[HANDLE_KINDS] = {
    [HANDLE_TENSOR] = "tensor",
    [HANDLE_TAPE] = "tape",
    [HANDLE_LAYER] = "layer",
    [HANDLE_OPTIMIZER] = "optimizer",
    [HANDLE_METRIC] = "metric",
    [HANDLE_GENERATOR] = "generator",
    [HANDLE_DATASET] = "dataset",
    [HANDLE_CHECKPOINT] = "checkpoint",
    [HANDLE_RESTORATION] = "restoration",
    [HANDLE_MANAGER] = "checkpoint_manager",
    [HANDLE_ARCHIVE] = "archive",
    [HANDLE_TRACKABLE] = "trackable",
};

/* Metatables lie in the registry under the addresses of these. */
static const char keys[HANDLE_KINDS];

const char *handle_kind_name(handle_kind kind)
{
    return names[kind];
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/*
 * Lua sees userdata of a few bytes and would let gigabytes of tensors pile up. So the bytes that
 * were made since the last collection are counted, and when they are as many as then lived (or 32
 * MB), a collection is run: at most about twice of what is in use is ever held.
 */
enum { LEAST_DEBT = 32 << 20 };
static __thread int64_t debt, limit = LEAST_DEBT;

void handle_collect(lua_State *L)
{
    if (debt < limit) return;
    debt = 0;
    lua_gc(L, LUA_GCCOLLECT);
    int64_t live = ed_memory_stats().live_bytes;
    limit = live / 2 > LEAST_DEBT ? live / 2 : LEAST_DEBT;
}

/* ---- Handles --------------------------------------------------------------------------------- */

static const char scope_key;
static __thread int scopes; /* open ones of ed.scope */

handle *handle_new(lua_State *L, handle_kind kind)
{
    handle *h = lua_newuserdatauv(L, sizeof *h, 0);
    *h = (handle){.mark = &mark, .kind = kind};
    lua_rawgetp(L, LUA_REGISTRYINDEX, &keys[kind]);
    lua_setmetatable(L, -2);
    if (scopes) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &scope_key);
        lua_pushvalue(L, -2);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
        lua_pop(L, 1);
    }
    return h;
}

void handle_put(handle *h, void *object)
{
    h->object = ed_retain(object);
    if (h->kind == HANDLE_TENSOR && object) {
        const ed_tensor *t = object;
        debt += t->size * (int64_t)dtype_size(t->dtype);
    }
}

static handle *ours(lua_State *L, int at)
{
    handle *h = lua_type(L, at) == LUA_TUSERDATA ? lua_touserdata(L, at) : NULL;
    return h && lua_rawlen(L, at) == sizeof *h && h->mark == &mark ? h : NULL;
}

void *handle_at(lua_State *L, int at, handle_kind kind)
{
    const handle *h = ours(L, at);
    return h && h->kind == kind && !h->closed ? h->object : NULL;
}

void *handle_check(lua_State *L, int at, handle_kind kind)
{
    const handle *h = ours(L, at);
    if (!h || h->kind != kind) luaL_typeerror(L, at, names[kind]);
    if (h->closed || !h->object)
        luaL_argerror(L, at, lua_pushfstring(L, "the %s was closed", names[kind]));
    return h->object;
}

void *handle_hold(void *object)
{
    return object ? scope_give(ed_retain(object)) : NULL;
}

static void release(handle *h)
{
    void *object = h->object;
    h->closed = true;
    h->object = NULL;
    ed_release(object);
}

static int collect(lua_State *L)
{
    handle *h = ours(L, 1);
    if (h) release(h);
    return 0;
}

/* Whether a finalizer runs; the collector says so by not running. Before 5.4.4 it looks the same
 * when the program stopped it. */
static bool in_finalizer(lua_State *L)
{
    return lua_gc(L, LUA_GCISRUNNING) < (LUA_VERSION_RELEASE_NUM < 50404 ? 1 : 0);
}

/* __close. A finalizer may run wherever memory is asked for, also within a binding that works with
 * the object: what it closes is released only when it is collected. */
static int close_handle(lua_State *L)
{
    handle *h = ours(L, 1);
    if (h && in_finalizer(L))
        h->closed = true;
    else if (h)
        release(h);
    return 0;
}

static int push_text(lua_State *L)
{
    lua_pushstring(L, lua_touserdata(L, 1));
    return 1;
}

bool handle_push_text(lua_State *L, const char *s)
{
    lua_pushcfunction(L, push_text);
    lua_pushlightuserdata(L, (void *)s);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK) return true;
    lua_pop(L, 1);
    return ed_fail(ED_OUT_OF_MEMORY, "Lua has no memory for a text"), false;
}

/* Pushes "script.lua:5: ", the innermost place that is not inside the module's own Lua. */
static void push_place(lua_State *L)
{
    lua_Debug at;
    for (int level = 1; lua_getstack(L, level, &at); level++) {
        lua_getinfo(L, "Sl", &at);
        if (at.currentline <= 0 || !strcmp(at.source, "=eddy")) continue;
        lua_pushfstring(L, "%s:%d: ", at.short_src, at.currentline);
        return;
    }
    lua_pushliteral(L, "");
}

int handle_raise(lua_State *L)
{
    char message[1024];
    strncpy(message, ed_error(), sizeof message - 1);
    message[sizeof message - 1] = 0;
    ed_clear_error(); /* first: what follows may raise another one */
    push_place(L);
    lua_pushstring(L, *message ? message : "an unknown error");
    lua_concat(L, 2);
    return lua_error(L);
}

/*
 * A userdata is small to Lua, and what it holds is not: by Lua's own measure thousands would lie
 * dead before they are collected. So collections begin at half as much again as lives, and go fast.
 */
void handle_open(lua_State *L)
{
    lua_gc(L, LUA_GCINC, 150, 400, 0);
    for (int kind = HANDLE_KINDS - 1; kind >= 0; kind--) {
        lua_createtable(L, 0, 24);
        lua_pushstring(L, names[kind]);
        lua_setfield(L, -2, "__name");
        lua_pushcfunction(L, collect);
        lua_setfield(L, -2, "__gc");
        lua_pushcfunction(L, close_handle);
        lua_setfield(L, -2, "__close");
        lua_createtable(L, 0, 16);
        lua_setfield(L, -2, "__index"); /* methods; tensors and layers put functions here */
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &keys[kind]);
        char name[32];
        snprintf(name, sizeof name, "eddy.%s", names[kind]);
        lua_setfield(L, LUA_REGISTRYINDEX, name); /* for luaL_getmetatable */
    }
}

/* ---- ed.scope -------------------------------------------------------------------------------- */

/*
 * scope(f, ...): calls f; what was made meanwhile is released at its end, but for what f returns.
 * The list of what is made lies in the registry; an inner scope's survivors go to the outer's list.
 */
static bool is_returned(lua_State *L, int first, int last, int at)
{
    for (int i = first; i <= last; i++)
        if (lua_rawequal(L, i, at)) return true;
    return false;
}

int handle_scope(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    int arguments = lua_gettop(L) - 1;
    lua_newtable(L);
    int made = 1;
    lua_insert(L, made);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &scope_key);
    int outer = 2;
    lua_insert(L, outer);
    lua_pushvalue(L, made);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &scope_key);
    scopes++;
    int state = lua_pcall(L, arguments, LUA_MULTRET, 0);
    scopes--;
    lua_pushvalue(L, outer);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &scope_key);
    int first = outer + 1, last = lua_gettop(L);
    lua_Integer count = (lua_Integer)lua_rawlen(L, made);
    luaL_checkstack(L, 4, NULL);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, made, i);
        handle *h = ours(L, -1);
        if (state == LUA_OK && is_returned(L, first, last, lua_gettop(L))) {
            if (scopes) {
                lua_pushvalue(L, -1);
                lua_rawseti(L, outer, (lua_Integer)lua_rawlen(L, outer) + 1);
            }
        } else if (h)
            release(h);
        lua_pop(L, 1);
    }
    if (state != LUA_OK) return lua_error(L);
    return last - first + 1;
}
