#include "lua/call.h"
#include "lua/repl/repl.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/*
 * Ctrl-C. The signal handler sets a hook that Lua calls before the next instruction of the running
 * Lua thread. The first Ctrl-C raises one error, so that functions that catch errors can clean up;
 * another one before the call has ended raises an error at each instruction until it ends. A
 * running op ends early (ed_interrupt). Where Lua executes no instructions, in C functions of Lua's
 * library and in finalizers, which run without hooks, this has no effect: the third press ends the
 * program, as lua's second does.
 */
static pthread_t main_thread;
static lua_State *volatile running;      /* NULL: no call is running */
static volatile sig_atomic_t presses;    /* since the call began */
static volatile sig_atomic_t unanswered; /* those since the last error that they raised */

static void stop(lua_State *L, lua_Debug *at)
{
    (void)at;
    int seen;
    do { /* again if the handler came in between */
        seen = presses;
        unanswered = 0;
        lua_sethook(L, seen > 1 ? stop : NULL, seen > 1 ? LUA_MASKCOUNT : 0, 1);
    } while (seen != presses);
    ed_clear_interrupt();
    luaL_where(L, 0);
    lua_pushliteral(L, "interrupted");
    lua_concat(L, 2);
    lua_error(L);
}

/* Sets the effect of a press on the thread that runs from now on. */
static void pass_on(lua_State *L)
{
    if (unanswered || presses > 1) lua_sethook(L, stop, LUA_MASKCOUNT, 1);
}

static void forget_presses(void)
{
    presses = unanswered = 0;
}

/* A signal of the process arrives in any thread that does not block it, for example one of a
 * numeric library: it is sent on to the thread of Lua, whose waiting it ends. */
bool repl_signal_is_elsewhere(int number)
{
    if (pthread_equal(pthread_self(), main_thread)) return false;
    const int saved = errno;
    pthread_kill(main_thread, number);
    errno = saved;
    return true;
}

static void on_interrupt(int number)
{
    if (repl_signal_is_elsewhere(number)) return;
    static const char warning[] = "\nthe call does not stop; press once more to end the program\n";
    const int saved = errno;
    lua_State *L = running;
    presses++;
    unanswered++;
    if (L) {
        lua_sethook(L, stop, LUA_MASKCOUNT, 1);
        ed_interrupt();
    }
    if (unanswered == 2) {
        ssize_t written = write(STDERR_FILENO, warning, sizeof warning - 1);
        (void)written;
    } else if (unanswered > 2) {
        signal(number, SIG_DFL);
        raise(number); /* arrives when this function returns */
    }
    errno = saved;
}

bool repl_pressed(void)
{
    return presses;
}

bool repl_interrupted(void)
{
    bool was = presses;
    forget_presses();
    return was;
}

/* ---- Tracebacks ------------------------------------------------------------------------------ */

/* Pushes the value as the string that lua prints; false if there is no traceback to add. */
static bool push_message(lua_State *L)
{
    if (lua_isstring(L, 1)) {
        lua_pushvalue(L, 1);
        lua_tostring(L, -1);
        return true;
    }
    if (luaL_callmeta(L, 1, "__tostring")) {
        if (lua_type(L, -1) == LUA_TSTRING) return false;
        lua_pop(L, 1);
    }
    lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    return true;
}

/* The length of "stdin:4:" at the beginning of a string; 0 if it does not begin so. */
static size_t place_length(const char *s)
{
    const char *end = s + strcspn(s, "\n"), *colon = s;
    while ((colon = memchr(colon, ':', (size_t)(end - colon)))) {
        const size_t digits = strspn(++colon, "0123456789");
        if (digits && colon[digits] == ':') return (size_t)(colon - s) + digits + 1;
    }
    return 0;
}

/* Whether a line of a traceback belongs to C or to Eddy's own Lua. */
static bool is_inside(const char *line)
{
    return !strncmp(line, "[C]:", 4) || !strncmp(line, "eddy:", 5);
}

static const char *next_line(const char *s)
{
    s += strcspn(s, "\n");
    return s + strspn(s, "\n\t");
}

/* The length of a string before the lines with which both strings end. */
static size_t length_before(const char *text, const char *other)
{
    size_t n = strlen(text), k = strlen(other), same = n;
    while (n && k && text[n - 1] == other[k - 1]) {
        n--, k--;
        if (text[n] == '\n') same = n;
    }
    return same;
}

/* Pushes Lua's traceback of the error at 1, first the functions inside a callback of Eddy's,
 * whose part of the stack no longer exists. */
static void push_trace(lua_State *L)
{
    luaL_traceback(L, L, NULL, 1);
    call_push_traceback(L, 1);
    const char *outer = lua_tostring(L, -2), *inner = lua_tostring(L, -1);
    if (!inner) {
        lua_pop(L, 1);
        return;
    }
    const size_t title = strcspn(outer, "\n"), size = length_before(outer, inner);
    lua_pushlstring(L, outer + title, size > title ? size - title : 0);
    lua_concat(L, 2);
    lua_remove(L, -2);
}

enum { MOST_LEVELS = 12 };

/* Adds a traceback's line "stdin:4: in function 'f'" as "in f, stdin:4"; false if the function
 * is not the program's. */
static bool add_function(luaL_Buffer *text, const char *line)
{
    static const char in[] = " in ", chunk[] = "main chunk";
    const size_t place = is_inside(line) ? 0 : place_length(line);
    if (!place || strncmp(line + place, in, sizeof in - 1) != 0) return false;
    const char *what = line + place + sizeof in - 1, *end = line + strcspn(line, "\n");
    if (!strncmp(what, chunk, sizeof chunk - 1)) return false;
    const char *name = memchr(what, '\'', (size_t)(end - what));
    luaL_addstring(text, "\n  in ");
    if (name)
        luaL_addlstring(text, name + 1, strcspn(name + 1, "'\n"));
    else
        luaL_addstring(text, "a function");
    luaL_addstring(text, ", ");
    luaL_addlstring(text, line, place - 1);
    return true;
}

static int explain_briefly(lua_State *L)
{
    luaL_Buffer text;
    int shown = 0;
    lua_settop(L, 1);
    push_message(L);
    push_trace(L);
    luaL_buffinit(L, &text);
    lua_pushvalue(L, 2);
    luaL_addvalue(&text);
    const char *line = next_line(lua_tostring(L, 3));
    for (; *line && shown < MOST_LEVELS; line = next_line(line)) shown += add_function(&text, line);
    if (*line) luaL_addstring(&text, "\n  ...");
    luaL_pushresult(&text);
    return 1;
}

static int explain(lua_State *L)
{
    lua_settop(L, 1);
    if (!push_message(L)) return 1;
    push_trace(L);
    lua_pushliteral(L, "\n");
    lua_insert(L, 3);
    lua_concat(L, 3);
    return 1;
}

/* The hook that the program set by debug.sethook: it is active while the program runs, and stays
 * set from call to call. */
static struct {
    lua_Hook function; /* NULL: none */
    int mask, count;
} own_hook;

static void put_hook_aside(lua_State *L)
{
    own_hook.function = lua_gethook(L) == stop ? NULL : lua_gethook(L);
    own_hook.mask = lua_gethookmask(L);
    own_hook.count = lua_gethookcount(L);
    lua_sethook(L, NULL, 0, 0);
}

int repl_call(lua_State *L, int arguments, int results, bool briefly)
{
    int function = lua_gettop(L) - arguments;
    lua_pushcfunction(L, briefly ? explain_briefly : explain);
    lua_insert(L, function);
    lua_sethook(L, own_hook.function, own_hook.mask, own_hook.count);
    forget_presses();
    running = L;
    int state = lua_pcall(L, arguments, results, function);
    running = NULL;
    put_hook_aside(L);
    ed_clear_interrupt();
    forget_presses();
    lua_remove(L, function);
    return state;
}

/* ---- Coroutines ------------------------------------------------------------------------------ */

/* A hook belongs to one Lua thread, so the running thread must be known: these functions replace
 * those of the library. A press may come at any moment, so the hook is set here too. */
static lua_State *enter(lua_State *thread)
{
    lua_State *outer = running;
    if (!outer) return NULL;
    running = thread;
    pass_on(thread);
    return outer;
}

static void leave(lua_State *outer)
{
    if (!outer) return;
    running = outer;
    pass_on(outer);
}

/* Closes the to-be-closed variables of the thread; leaves the error on its stack. */
static int reset(lua_State *thread)
{
    lua_State *outer = enter(thread);
    int state = lua_resetthread(thread);
    leave(outer);
    return state;
}

/* Resumes the thread with the values at the top of L; replaces them by the results and returns
 * their number, or by an error and returns -1. */
static int resume_thread(lua_State *L, lua_State *thread, int arguments)
{
    int results;
    if (!lua_checkstack(thread, arguments))
        return lua_pushliteral(L, "too many arguments to resume"), -1;
    lua_xmove(L, thread, arguments);
    lua_State *outer = enter(thread);
    const int state = lua_resume(thread, L, arguments, &results);
    leave(outer);
    if (state != LUA_OK && state != LUA_YIELD) return lua_xmove(thread, L, 1), -1;
    if (!lua_checkstack(L, results + 1)) {
        lua_pop(thread, results);
        return lua_pushliteral(L, "too many results to resume"), -1;
    }
    lua_xmove(thread, L, results);
    return results;
}

static int resume(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTHREAD);
    lua_State *thread = lua_tothread(L, 1);
    const int results = resume_thread(L, thread, lua_gettop(L) - 1);
    const int values = results < 0 ? 1 : results;
    lua_pushboolean(L, results >= 0);
    lua_insert(L, -(values + 1));
    return values + 1;
}

static int wrapped(lua_State *L)
{
    lua_State *thread = lua_tothread(L, lua_upvalueindex(1));
    const int results = resume_thread(L, thread, lua_gettop(L));
    if (results >= 0) return results;
    int state = lua_status(thread);
    if (state != LUA_OK && state != LUA_YIELD) {
        state = reset(thread);
        lua_xmove(thread, L, 1);
    }
    if (state == LUA_ERRMEM || lua_type(L, -1) != LUA_TSTRING) return lua_error(L);
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

static int close_thread(lua_State *L)
{
    lua_Debug at;
    luaL_checktype(L, 1, LUA_TTHREAD);
    lua_State *thread = lua_tothread(L, 1);
    const bool active = lua_status(thread) == LUA_OK && lua_getstack(thread, 0, &at);
    if (active || thread == L)
        return luaL_error(L, "cannot close a %s coroutine", thread == L ? "running" : "normal");
    const bool fine = reset(thread) == LUA_OK;
    lua_pushboolean(L, fine);
    if (!fine) lua_xmove(thread, L, 1);
    return fine ? 1 : 2;
}

static const luaL_Reg coroutines[] = {
    {"resume", resume}, {"wrap", wrap}, {"close", close_thread}, {NULL, NULL}};

void repl_call_open(lua_State *L)
{
    lua_getglobal(L, LUA_COLIBNAME);
    luaL_setfuncs(L, coroutines, 0);
    lua_pop(L, 1);
    main_thread = pthread_self();
    /* without SA_RESTART: a waiting read ends too */
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
}
