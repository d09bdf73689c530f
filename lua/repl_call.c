#include "lua/repl.h"
#include <signal.h>
#include <string.h>

/*
 * Ctrl-C. The signal's handler may do one thing only: have Lua call a hook before its next
 * instruction, in the thread (Lua's) that is running. The first Ctrl-C raises one error, which lets
 * functions that catch errors clean up; one that comes before that has ended the call raises an
 * error at every instruction until it has. An op that runs ends early, as ed_interrupt has it.
 */
static lua_State *volatile running; /* NULL: nothing is */
static volatile sig_atomic_t presses;

static void stop(lua_State *L, lua_Debug *at)
{
    (void)at;
    int seen;
    do { /* once more if the handler came in between */
        seen = presses;
        lua_sethook(L, seen > 1 ? stop : NULL, seen > 1 ? LUA_MASKCOUNT : 0, 1);
    } while (seen != presses);
    ed_clear_interrupt();
    luaL_where(L, 0);
    lua_pushliteral(L, "interrupted");
    lua_concat(L, 2);
    lua_error(L);
}

static void on_interrupt(int number)
{
    (void)number;
    lua_State *L = running;
    presses++;
    if (!L) return;
    lua_sethook(L, stop, LUA_MASKCOUNT, 1);
    ed_interrupt();
}

bool repl_pressed(void)
{
    return presses;
}

bool repl_interrupted(void)
{
    bool was = presses;
    presses = 0;
    return was;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

enum { MOST_LEVELS = 12 };

/* The functions of Lua an error went through, innermost first, by name and line. */
static void add_functions(lua_State *L, luaL_Buffer *text)
{
    lua_Debug at;
    int shown = 0;
    for (int level = 1; lua_getstack(L, level, &at); level++) {
        lua_getinfo(L, "Sln", &at);
        if (at.currentline < 0 || !strcmp(at.what, "main")) continue;
        if (shown++ == MOST_LEVELS) {
            luaL_addstring(text, "\n  ...");
            return;
        }
        lua_pushfstring(L, "\n  in %s, %s:%d", at.name ? at.name : "a function", at.short_src,
                        at.currentline);
        luaL_addvalue(text);
    }
}

static int explain_briefly(lua_State *L)
{
    luaL_Buffer text;
    size_t size;
    const char *message = luaL_tolstring(L, 1, &size);
    luaL_buffinit(L, &text);
    luaL_addlstring(&text, message, size);
    add_functions(L, &text);
    luaL_pushresult(&text);
    return 1;
}

static int explain(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

int repl_call(lua_State *L, int arguments, int results, bool briefly)
{
    int function = lua_gettop(L) - arguments;
    lua_pushcfunction(L, briefly ? explain_briefly : explain);
    lua_insert(L, function);
    presses = 0;
    running = L;
    int state = lua_pcall(L, arguments, results, function);
    running = NULL;
    lua_sethook(L, NULL, 0, 0);
    ed_clear_interrupt();
    presses = 0;
    lua_remove(L, function);
    return state;
}

/* ---- Coroutines ------------------------------------------------------------------------------ */

/* A hook belongs to one thread of Lua's, so who runs has to be known: these two take the place of
 * the library's. */
static int run(lua_State *L, lua_State *thread, int arguments)
{
    int results;
    if (!lua_checkstack(thread, arguments)) return luaL_error(L, "too many arguments to resume");
    lua_xmove(L, thread, arguments);
    lua_State *outer = running;
    if (outer) running = thread;
    int state = lua_resume(thread, L, arguments, &results);
    if (outer) running = outer;
    if (state != LUA_OK && state != LUA_YIELD) return -1;
    luaL_checkstack(L, results + 1, "too many results to resume");
    lua_xmove(thread, L, results);
    return results;
}

/* Whether it can be resumed; pushes the reason why not. */
static bool is_resumable(lua_State *L, lua_State *thread)
{
    lua_Debug at;
    int state = lua_status(thread);
    bool fresh = state == LUA_OK && !lua_getstack(thread, 0, &at) && lua_gettop(thread);
    if (state == LUA_YIELD || fresh) return true;
    bool alive = state == LUA_OK && lua_getstack(thread, 0, &at);
    lua_pushfstring(L, "cannot resume %s coroutine", alive ? "non-suspended" : "dead");
    return false;
}

static int resume(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTHREAD);
    lua_State *thread = lua_tothread(L, 1);
    int results = -1;
    if (is_resumable(L, thread)) {
        results = run(L, thread, lua_gettop(L) - 1);
        if (results < 0) lua_xmove(thread, L, 1);
    }
    lua_pushboolean(L, results >= 0);
    lua_insert(L, results < 0 ? -2 : -(results + 1));
    return results < 0 ? 2 : results + 1;
}

static int wrapped(lua_State *L)
{
    lua_State *thread = lua_tothread(L, lua_upvalueindex(1));
    if (!is_resumable(L, thread)) return lua_error(L);
    int results = run(L, thread, lua_gettop(L));
    if (results >= 0) return results;
    lua_resetthread(thread); /* closes what is to be closed; leaves the error */
    lua_xmove(thread, L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) return lua_error(L);
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
    return lua_error(L);
}

static int wrap(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *thread = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, thread, 1);
    lua_pushcclosure(L, wrapped, 1);
    return 1;
}

static const luaL_Reg coroutines[] = {{"resume", resume}, {"wrap", wrap}, {NULL, NULL}};

void repl_call_open(lua_State *L)
{
    lua_getglobal(L, LUA_COLIBNAME);
    luaL_setfuncs(L, coroutines, 0);
    lua_pop(L, 1);
    /* without SA_RESTART: a read that waits ends too */
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
}
