#include "lua/arguments.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>

/* ---- Signatures ------------------------------------------------------------------------------ */

static const char signatures_key; /* "name" or "kind:name" -> the most arguments, without self */

/* The most arguments of the list in parentheses that begins at `s`: INT_MAX where "..." is one. */
static int count_list(const char *s, const char *end)
{
    int depth = 0, n = 0;
    for (; s < end; s++) {
        if (*s == '(' || *s == '{') depth++;
        if (*s == ')' || *s == '}') depth--;
        if (!depth) return n;
        if (depth == 1 && !strncmp(s, "...", 3)) return INT_MAX;
        if (depth == 1 && *s == ',') n++;
        if (!n && *s != '(' && *s != ' ') n = 1; /* the list is not empty */
    }
    return n;
}

/* The most arguments of a line of signatures, "range(limit) range(start, limit, delta)"; a table in
 * braces is one. -1: it has a name alone. */
static int count_line(const char *s, const char *end)
{
    int most = -1, depth = 0;
    for (const char *line = s; s < end; s++) {
        const bool called = !depth && s > line && (isalnum((unsigned char)s[-1]) || s[-1] == '_');
        const int n = !called ? -1 : *s == '(' ? count_list(s, end) : *s == '{' ? 1 : -1;
        if (n > most) most = n;
        depth += (*s == '(' || *s == '{') - (*s == ')' || *s == '}');
    }
    return most;
}

static const char *end_of_name(const char *s, const char *end)
{
    while (s < end && (isalnum((unsigned char)*s) || strchr("_.:", *s))) s++;
    return s;
}

void arguments_open(lua_State *L, const char *text, const char *end)
{
    lua_newtable(L);
    for (const char *s = text; s < end;) {
        const char *line = memchr(s, '\n', (size_t)(end - s));
        if (!line) line = end;
        const int most = isalpha((unsigned char)*s) ? count_line(s, line) : -1;
        if (most >= 0) {
            lua_pushlstring(L, s, (size_t)(end_of_name(s, line) - s));
            lua_pushinteger(L, most);
            lua_rawset(L, -3);
        }
        s = line + 1;
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &signatures_key);
}

void arguments_close(lua_State *L)
{
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &signatures_key);
}

/* ---- Functions ------------------------------------------------------------------------------- */

int arguments_refuse(lua_State *L, const char *name, int given, int most)
{
    return handle_fail(L, "%s: got %d argument%s, at most %d", name, given, given == 1 ? "" : "s",
                       most);
}

int arguments_no_more(lua_State *L)
{
    const int surplus = lua_gettop(L) - 2, most = (int)lua_tointeger(L, 2);
    return surplus > 0 ? arguments_refuse(L, lua_tostring(L, 1), most + surplus, most) : 0;
}

/* Upvalues: the function; its name; its most arguments; 1 for a method, whose self does not count,
 * else 0. */
static int refuse_or_call(lua_State *L)
{
    const int given = lua_gettop(L), most = (int)lua_tointeger(L, lua_upvalueindex(3));
    if (__builtin_expect(given <= most, 1)) return lua_tocfunction(L, lua_upvalueindex(1))(L);
    const int self = (int)lua_tointeger(L, lua_upvalueindex(4));
    return arguments_refuse(L, lua_tostring(L, lua_upvalueindex(2)), given - self, most - self);
}

/* Pushes the function with the check; any number of arguments needs none. */
static void push_checked(lua_State *L, const char *kind, const luaL_Reg *function)
{
    const char *key = kind ? lua_pushfstring(L, "%s:%s", kind, function->name)
                           : lua_pushstring(L, function->name);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &signatures_key);
    lua_getfield(L, -1, key);
    if (!lua_isinteger(L, -1)) luaL_error(L, "eddy: help.txt has no signature of %s", key);
    const lua_Integer most = lua_tointeger(L, -1);
    lua_pop(L, 3);
    lua_pushcfunction(L, function->func);
    if (most == INT_MAX) return;
    lua_pushstring(L, function->name);
    lua_pushinteger(L, most + (kind != NULL));
    lua_pushinteger(L, kind != NULL);
    lua_pushcclosure(L, refuse_or_call, 4);
}

void arguments_set(lua_State *L, const char *kind, const luaL_Reg *functions)
{
    luaL_checkstack(L, 8, NULL);
    for (; functions->name; functions++) {
        push_checked(L, kind, functions);
        lua_setfield(L, -2, functions->name);
    }
}

void arguments_push(lua_State *L, const char *name, lua_CFunction function)
{
    push_checked(L, NULL, &(luaL_Reg){name, function});
}
