#include "lua/repl.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The prompt reads until what it has read is an expression or a statement, runs it, and prints the
 * results; the first one is _ afterwards.
 */

/* ---- The session ------------------------------------------------------------------------------
 */

/*
 * All that was entered counts as one text, so that "stdin:57" in an error names one line, which can
 * be shown. The lines are in a table in the registry.
 */
static int entered, latest; /* lines; where the latest chunk begins */

static void remember_lines(lua_State *L, const char *chunk)
{
    latest = entered + 1;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, "eddy.session");
    for (const char *line = chunk;; line++) {
        size_t size = strcspn(line, "\n");
        lua_pushlstring(L, line, size);
        lua_rawseti(L, -2, ++entered);
        line += size;
        if (!*line) break;
    }
    lua_pop(L, 1);
}

/* Pushes the text as it stands in the session: behind the lines before it. */
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

/* The line an error names, unless it is all that was just entered. */
static void show_line(lua_State *L, const char *message)
{
    static const char name[] = "stdin:";
    int line = strncmp(message, name, sizeof name - 1) ? 0 : atoi(message + sizeof name - 1);
    if (!line || line > entered || (line == latest && latest == entered)) return;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, "eddy.session");
    lua_rawgeti(L, -1, line);
    fprintf(stderr, "  %d: %s\n", line, lua_tostring(L, -1));
    lua_pop(L, 2);
}

void prompt_complain(lua_State *L)
{
    const char *message = lua_tostring(L, -1);
    if (!message) message = "an error that is no text";
    size_t size = strcspn(message, "\n");
    static const char stopped[] = "interrupted";
    size_t end = sizeof stopped - 1;
    bool by_key = size >= end && !strncmp(message + size - end, stopped, end);
    fflush(stdout);
    if (by_key && isatty(STDERR_FILENO)) fputc('\n', stderr); /* behind the ^C */
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
    if (!lua_isnil(L, base)) {
        lua_pushvalue(L, base);
        lua_setglobal(L, "_");
    }
    luaL_checkstack(L, 2, NULL);
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

int prompt_compile(lua_State *L, const char *text)
{
    if (compile(L, "return ", text) == LUA_OK) return LUA_OK;
    lua_pop(L, 1);
    return compile(L, "", text);
}

/* Whether the error at the top says that the text is only a beginning. */
static bool is_beginning(lua_State *L, int state)
{
    static const char mark[] = "<eof>";
    size_t size;
    const char *message = lua_tolstring(L, -1, &size);
    return state == LUA_ERRSYNTAX && size >= sizeof mark - 1 &&
           !strcmp(message + size - (sizeof mark - 1), mark);
}

/* What is given up when it ends with its line, as newcomers find out. */
static void warn_of_local(const char *chunk)
{
    bool local = !strncmp(chunk, "local ", 6) && !strchr(chunk, '\n') && !strchr(chunk, ';') &&
                 !strstr(chunk, " function");
    if (local && isatty(STDOUT_FILENO))
        printf("%sa local ends with its line here; without 'local' it stays%s\n",
               style_begin(stdout, STYLE_FAINT), style_end(stdout));
}

/* Reads on from the line at the top until it is a chunk, which is at the top then with its function
 * or error above it; false if that was given up. */
static bool read_chunk(lua_State *L, int *code)
{
    for (;;) {
        *code = prompt_compile(L, lua_tostring(L, -1));
        if (!is_beginning(L, *code)) return true;
        lua_pop(L, 1);
        lua_pushliteral(L, "\n");
        if (line_read(L, ">> ") != LINE_READ) return false;
        lua_concat(L, 3);
    }
}

static void run_chunk(lua_State *L)
{
    int code;
    if (!read_chunk(L, &code)) return;
    const char *chunk = lua_tostring(L, -2);
    line_remember(chunk);
    remember_lines(L, chunk);
    if (code != LUA_OK) return prompt_complain(L);
    prompt_call(L);
    warn_of_local(chunk);
}

void prompt_loop(lua_State *L)
{
    bool leave = false;
    line_open(L);
    int top = lua_gettop(L);
    while (!leave) {
        lua_settop(L, top);
        line_result got = line_read(L, "> ");
        if (got == LINE_END) break;
        if (got == LINE_INTERRUPTED) continue;
        const char *line = lua_tostring(L, -1);
        line += strspn(line, " \t");
        if (!*line) continue;
        if (command_run(L, line, &leave)) continue;
        if (*line == '=') lua_pushfstring(L, "return %s", line + 1);
        run_chunk(L);
    }
    line_close();
}
