#include "lua/repl/repl.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The prompt reads until the input is a complete expression or statement, runs it, and prints
 * the results; the first one becomes _. */

/* ---- The session ----------------------------------------------------------------------------- */

/* All input counts as one chunk, so "stdin:57" in an error names one line, which can be shown.
 * The lines are in a table in the registry. */
static const char lines_key;
static int entered, latest; /* number of lines; first line of the latest chunk */

/* Pushes the table. */
static void push_lines(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &lines_key) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lines_key);
}

static void remember_lines(lua_State *L, const char *chunk)
{
    push_lines(L);
    latest = entered + 1;
    for (const char *line = chunk;; line++) {
        size_t size = strcspn(line, "\n");
        lua_pushlstring(L, line, size);
        lua_rawseti(L, -2, entered + 1);
        entered++;
        line += size;
        if (!*line) break;
    }
    lua_pop(L, 1);
}

bool prompt_push_line(lua_State *L, const char *place)
{
    static const char name[] = "stdin:";
    const int line = strncmp(place, name, sizeof name - 1) ? 0 : atoi(place + sizeof name - 1);
    if (line < 1 || line > entered) return false;
    push_lines(L);
    lua_rawgeti(L, -1, line);
    lua_remove(L, -2);
    return true;
}

/* Pushes the string after as many newlines as there are lines before it. */
static const char *push_placed(lua_State *L, const char *before, const char *chunk)
{
    luaL_Buffer code;
    luaL_buffinit(L, &code);
    for (int i = 0; i < entered; i++) luaL_addchar(&code, '\n');
    luaL_addstring(&code, before);
    luaL_addstring(&code, chunk);
    luaL_pushresult(&code);
    return lua_tostring(L, -1);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Prints the line of the error, unless it is the only line that was just entered. */
static void show_line(lua_State *L, const char *message)
{
    if (!prompt_push_line(L, message)) return;
    const int line = atoi(strchr(message, ':') + 1);
    if (line != latest || latest != entered)
        fprintf(stderr, "  %d: %s\n", line, lua_tostring(L, -1));
    lua_pop(L, 1);
}

void prompt_complain(lua_State *L)
{
    const char *message = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "an error";
    size_t size = strcspn(message, "\n");
    static const char stopped[] = "interrupted";
    size_t end = sizeof stopped - 1;
    bool by_key = size >= end && !strncmp(message + size - end, stopped, end);
    fflush(stdout);
    if (by_key && isatty(STDERR_FILENO)) fputc('\n', stderr); /* after the ^C */
    fprintf(stderr, "%s%.*s%s\n", style_begin(stderr, STYLE_ERROR), (int)size, message,
            style_end(stderr));
    show_line(L, message);
    if (message[size])
        fprintf(stderr, "%s%s%s\n", style_begin(stderr, STYLE_FAINT), message + size + 1,
                style_end(stderr));
    lua_pop(L, 1);
}

/* ---- Results --------------------------------------------------------------------------------- */

static int print_results(lua_State *L)
{
    for (int i = 1; i <= lua_gettop(L); i++) show_value(L, i);
    return 0;
}

void prompt_call(lua_State *L)
{
    int base = lua_gettop(L);
    if (repl_call(L, 0, LUA_MULTRET, true) != LUA_OK) return prompt_complain(L);
    int results = lua_gettop(L) - base + 1;
    if (!results) return;
    luaL_checkstack(L, 4, NULL);
    if (!lua_isnil(L, base)) {
        lua_pushglobaltable(L);
        lua_pushliteral(L, "_");
        lua_pushvalue(L, base);
        lua_rawset(L, -3); /* ignores metamethods of the globals */
        lua_pop(L, 1);
    }
    lua_pushcfunction(L, print_results);
    lua_insert(L, base);
    if (repl_call(L, results, 0, true) != LUA_OK) prompt_complain(L);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int compile(lua_State *L, const char *before, const char *text)
{
    const char *code = push_placed(L, before, text);
    int state = luaL_loadbufferx(L, code, strlen(code), "=stdin", "t");
    lua_remove(L, -2);
    return state;
}

/* An expression or a statement. */
static int compile_either(lua_State *L, const char *text)
{
    if (compile(L, "return ", text) == LUA_OK) return LUA_OK;
    lua_pop(L, 1);
    return compile(L, "", text);
}

int prompt_enter(lua_State *L, const char *text)
{
    const int code = compile_either(L, text);
    remember_lines(L, text);
    return code;
}

static bool names_the_end(lua_State *L, int state)
{
    static const char mark[] = "<eof>";
    size_t size;
    const char *message = lua_tolstring(L, -1, &size);
    return state == LUA_ERRSYNTAX && size >= sizeof mark - 1 &&
           !strcmp(message + size - (sizeof mark - 1), mark);
}

/* Whether the error at the top says that the string below it is incomplete. A quote that is not
 * closed at the end of its line is an error of that line. */
static bool is_beginning(lua_State *L, int state)
{
    if (!names_the_end(L, state)) return false;
    lua_pushfstring(L, "%s\n", lua_tostring(L, -2));
    state = compile_either(L, lua_tostring(L, -1));
    lua_remove(L, -2);
    const bool open = names_the_end(L, state);
    lua_remove(L, open ? -1 : -2);
    return open;
}

/* A hint for a local variable, which ends with its line. */
static void warn_of_local(const char *chunk)
{
    bool local = !strncmp(chunk, "local ", 6) && !strchr(chunk, '\n') && !strchr(chunk, ';') &&
                 !strstr(chunk, " function");
    if (local && isatty(STDOUT_FILENO))
        printf("%sa local variable ends with its line here; without 'local' it stays%s\n",
               style_begin(stdout, STYLE_FAINT), style_end(stdout));
}

/* Reads on from the line at the top until it is a complete chunk, which is then at the top, with
 * its function or error above it; false if it was discarded. An empty line discards it; but
 * empty lines of a pasted program, of which more input is waiting, are part of it. */
static bool read_chunk(lua_State *L, int *code)
{
    for (;;) {
        *code = compile_either(L, lua_tostring(L, -1));
        if (!is_beginning(L, *code)) return true;
        lua_pushliteral(L, "\n");
        if (line_read(L, ">> ") != LINE_READ) return false;
        const char *line = lua_tostring(L, -1);
        if (!line[strspn(line, " \t")] && line_is_last()) return lua_pop(L, 2), true;
        lua_remove(L, -3);
        lua_concat(L, 3);
    }
}

/* Whether the string is one word, and there is no global variable of that name. */
static bool is_nothing(lua_State *L, const char *text)
{
    const size_t size =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (!size || (*text >= '0' && *text <= '9') || text[size + strspn(text + size, " \t")])
        return false;
    lua_pushglobaltable(L);
    const bool made_up = lua_getmetatable(L, -1);
    if (made_up) lua_pop(L, 1);
    lua_pushlstring(L, text, size);
    const bool nothing = lua_rawget(L, -2) == LUA_TNIL && !made_up;
    lua_pop(L, 2);
    if (nothing) printf("nil: there is no variable %.*s\n", (int)size, text);
    return nothing;
}

static void run_chunk(lua_State *L)
{
    int code;
    if (!read_chunk(L, &code)) return;
    const char *chunk = lua_tostring(L, -2);
    line_remember(chunk);
    remember_lines(L, chunk);
    if (code != LUA_OK) return prompt_complain(L);
    if (strcmp(chunk, "nil") != 0 && is_nothing(L, chunk)) return;
    prompt_call(L);
    warn_of_local(chunk);
}

/* Reads and runs one input; sets the flag at 1 at the end of input. */
static int round_of(lua_State *L)
{
    bool *leave = lua_touserdata(L, 1);
    line_result got = line_read(L, "> ");
    *leave = got == LINE_END;
    if (got != LINE_READ) return 0;
    const char *line = lua_tostring(L, -1);
    line += strspn(line, " \t");
    if (!*line || command_run(L, line, leave)) return 0;
    if (*line == '=') lua_pushfstring(L, "return %s", line + 1);
    run_chunk(L);
    return 0;
}

static int complain(lua_State *L)
{
    prompt_complain(L);
    return 0;
}

/* An error that is not of the program's own code, such as out of memory, ends only this input. */
void prompt_loop(lua_State *L)
{
    bool leave = false;
    const int top = lua_gettop(L);
    line_open(L);
    garbage_traced = true; /* for :mem */
    while (!leave) {
        lua_pushcfunction(L, round_of);
        lua_pushlightuserdata(L, &leave);
        if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
            lua_pushcfunction(L, complain);
            lua_insert(L, -2);
            lua_pcall(L, 1, 0, 0);
        }
        lua_settop(L, top);
    }
    line_close();
}
