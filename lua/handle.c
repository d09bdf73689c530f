#include "lua/handle.h"
#include "lua/call.h"
#include "lua/wording.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char mark;

static const char *const names[HANDLE_KINDS] = {
    [HANDLE_TENSOR] = "tensor",
    [HANDLE_TAPE] = "tape",
    [HANDLE_ACCUMULATOR] = "forward_accumulator",
    [HANDLE_SPARSE] = "sparse_tensor",
    [HANDLE_LAYER] = "layer",
    [HANDLE_OPTIMIZER] = "optimizer",
    [HANDLE_METRIC] = "metric",
    [HANDLE_INITIALIZER] = "initializer",
    [HANDLE_REGULARIZER] = "regularizer",
    [HANDLE_CONSTRAINT] = "constraint",
    [HANDLE_SCHEDULE] = "schedule",
    [HANDLE_LOSS] = "loss",
    [HANDLE_CALLBACK] = "callback",
    [HANDLE_GENERATOR] = "generator",
    [HANDLE_DATASET] = "dataset",
    [HANDLE_CHECKPOINT] = "checkpoint",
    [HANDLE_RESTORATION] = "restoration",
    [HANDLE_MANAGER] = "checkpoint_manager",
    [HANDLE_ARCHIVE] = "archive",
    [HANDLE_TRACKABLE] = "trackable",
    [HANDLE_LIST] = "list",
};

/* The metatables are in the registry under the addresses of these. */
static const char keys[HANDLE_KINDS];

const char *handle_kind_name(handle_kind kind)
{
    return names[kind];
}

/* ---- Handles --------------------------------------------------------------------------------- */

static const char scope_key; /* Lua thread -> the set of its innermost scope */
static __thread int scopes;  /* number of open ones of ed.scope */

static void note_in_scope(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &scope_key);
    lua_pushthread(L);
    if (lua_rawget(L, -2) == LUA_TTABLE) {
        lua_pushvalue(L, -3);
        lua_pushboolean(L, true);
        lua_rawset(L, -3);
    }
    lua_pop(L, 2);
}

handle *handle_new_with(lua_State *L, handle_kind kind, int metatable)
{
    garbage_collect(L);
    handle *h = lua_newuserdatauv(L, sizeof *h, 0);
    *h = (handle){.mark = &mark, .kind = kind};
    lua_pushvalue(L, metatable);
    lua_setmetatable(L, -2);
    if (scopes) note_in_scope(L);
    if (garbage_traced) garbage_note(L);
    return h;
}

void handle_push_metatable(lua_State *L, handle_kind kind)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &keys[kind]);
}

handle *handle_new(lua_State *L, handle_kind kind)
{
    handle_push_metatable(L, kind);
    handle *h = handle_new_with(L, kind, lua_gettop(L));
    lua_remove(L, -2);
    return h;
}

void handle_put(handle *h, void *object)
{
    h->object = ed_retain(object);
}

/* A value that is not a full userdata has no address or no length. */
static handle *ours(lua_State *L, int at)
{
    handle *h = lua_touserdata(L, at);
    return h && lua_rawlen(L, at) == sizeof *h && h->mark == &mark ? h : NULL;
}

void handle_new_weak(lua_State *L, const char *mode, const void *key)
{
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

const char *handle_name(lua_State *L, int at)
{
    const handle *h = ours(L, at);
    return h ? names[h->kind] : NULL;
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

/* Whether a finalizer runs: then the collector is stopped. Before Lua 5.4.4 it looks the same
 * when the program stopped it. */
static bool in_finalizer(lua_State *L)
{
    return lua_gc(L, LUA_GCISRUNNING) < (LUA_VERSION_RELEASE_NUM < 50404 ? 1 : 0);
}

/* A finalizer may run at any allocation, also in a binding that works with the object: an object
 * that it closes is released only when its userdata is collected. */
static void close_one(lua_State *L, handle *h)
{
    if (in_finalizer(L))
        h->closed = true;
    else
        release(h);
}

static int close_handle(lua_State *L)
{
    handle *h = ours(L, 1);
    if (h) close_one(L, h);
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
    return ed_fail(ED_OUT_OF_MEMORY, "Lua has no memory for a string"), false;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

bool handle_push_place(lua_State *L)
{
    lua_Debug at;
    for (int level = 1; lua_getstack(L, level, &at); level++) {
        lua_getinfo(L, "Sl", &at);
        if (at.currentline <= 0 || !strcmp(at.source, "=eddy")) continue;
        lua_pushfstring(L, "%s:%d", at.short_src, at.currentline);
        return true;
    }
    return false;
}

int handle_raise(lua_State *L)
{
    char message[1024];
    strncpy(message, ed_error(), sizeof message - 1);
    message[sizeof message - 1] = 0;
    ed_clear_error(); /* first: the following may raise another error */
    if (call_push_error(L, message)) return lua_error(L);
    const int before = lua_gettop(L);
    if (handle_push_place(L)) lua_pushliteral(L, ": ");
    wording_push(L, *message ? message : "an unknown error");
    lua_concat(L, lua_gettop(L) - before);
    return lua_error(L);
}

int handle_fail(lua_State *L, const char *format, ...)
{
    va_list arguments;
    const int before = lua_gettop(L);
    if (handle_push_place(L)) lua_pushliteral(L, ": ");
    va_start(arguments, format);
    lua_pushvfstring(L, format, arguments);
    va_end(arguments);
    lua_concat(L, lua_gettop(L) - before);
    return lua_error(L);
}

/* ---- Calls of Eddy --------------------------------------------------------------------------- */

static __thread lua_State *thread;

lua_State *binding_thread(void)
{
    return thread;
}

binding binding_open(lua_State *L)
{
    binding b = {ed_scope_open(), thread, ed_set_index_base(1)};
    thread = L;
    return b;
}

void binding_close(binding *b)
{
    thread = b->outer;
    ed_set_index_base(b->first);
    ed_scope_close(&b->scope);
}

int binding_finish(lua_State *L, binding *b, handle *h, void *object)
{
    handle_put(h, object);
    binding_close(b);
    return object ? 1 : handle_raise(L);
}

int binding_finish_text(lua_State *L, binding *b, const char *s)
{
    const bool fine = s ? handle_push_text(L, s) : !ed_failed();
    binding_close(b);
    if (!fine) return handle_raise(L);
    if (!s) lua_pushnil(L);
    return 1;
}

/* ---- ed.scope -------------------------------------------------------------------------------- */

static int scope_end(lua_State *L)
{
    lua_settop(L, 1);
    scopes--;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &scope_key);
    lua_pushthread(L);
    lua_getfield(L, 1, "outer");
    lua_rawset(L, 2);
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        handle *h = ours(L, -2);
        if (h) close_one(L, h);
    }
    return 0;
}

void handle_leave_scope(lua_State *L, int at)
{
    if (!scopes) return;
    at = lua_absindex(L, at);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &scope_key);
    lua_pushthread(L);
    lua_rawget(L, -2);
    while (lua_type(L, -1) == LUA_TTABLE) {
        lua_pushvalue(L, at);
        lua_pushnil(L);
        lua_rawset(L, -3);
        lua_getfield(L, -1, "outer");
        lua_replace(L, -2);
    }
    lua_pop(L, 2);
}

int handle_scope(lua_State *L)
{
    lua_settop(L, 0);
    lua_newtable(L);
    luaL_getmetatable(L, "eddy.scope");
    lua_setmetatable(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &scope_key);
    lua_pushthread(L);
    lua_rawget(L, 2);
    lua_setfield(L, 1, "outer");
    lua_pushthread(L);
    lua_pushvalue(L, 1);
    lua_rawset(L, 2);
    scopes++;
    lua_settop(L, 1);
    return 1;
}

static void open_scopes(lua_State *L)
{
    luaL_newmetatable(L, "eddy.scope");
    lua_pushcfunction(L, scope_end);
    lua_setfield(L, -2, "__close");
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    handle_new_weak(L, "k", &scope_key);
}

/* ---- Metatables ------------------------------------------------------------------------------ */

/*
 * A userdata is small to Lua, but its object is not: by Lua's default thousands of dead objects
 * would accumulate. So a collection begins when memory is 1.5 times that after the last one, and
 * runs fast.
 */
void handle_open(lua_State *L)
{
    open_scopes(L);
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
