#include "lua/plot.h"
#include "lua/repl.h"
#include <stdlib.h>
#include <string.h>

/* ---- Colours --------------------------------------------------------------------------------- */

const char *style_begin(FILE *to, style s)
{
    static const char *const codes[] = {[STYLE_ERROR] = "\033[31m", [STYLE_FAINT] = "\033[2m"};
    return plot_coloured(to) ? codes[s] : "";
}

const char *style_end(FILE *to)
{
    return plot_coloured(to) ? "\033[0m" : "";
}

/* ---- Keys in order --------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **show_sorted_keys(lua_State *L, int table, size_t *count)
{
    size_t n = 0, i = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) n += lua_type(L, -2) == LUA_TSTRING;
    const char **keys = lua_newuserdatauv(L, (n + 1) * sizeof *keys, 0);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && i < n) keys[i++] = lua_tostring(L, -2);
    qsort(keys, i, sizeof *keys, by_text);
    *count = i;
    return keys;
}

/* ---- Values ---------------------------------------------------------------------------------- */

enum { MOST_ITEMS = 60, LONGEST_TEXT = 60, LINE = 96 };

/* A text as a program would have it, up to `most` bytes of it. */
static void print_quoted(const char *s, size_t size, size_t most)
{
    putchar('"');
    for (size_t i = 0; i < size && i < most; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c < 32 || c == 127)
            printf("\\%03d", c);
        else
            putchar(c);
    }
    fputs(size > most ? "\"..." : "\"", stdout);
}

/* "float32 [2, 3]" of a tensor within a table. */
static void push_brief_tensor(lua_State *L, const ed_tensor *t)
{
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    luaL_addstring(&text, ed_dtype_name(ed_dtype_of(t)));
    luaL_addstring(&text, " [");
    ed_ints shape = ed_shape(t);
    for (int64_t i = 0; i < shape.count; i++) {
        lua_pushfstring(L, i ? ", %I" : "%I", (LUAI_UACINT)shape.values[i]);
        luaL_addvalue(&text);
    }
    luaL_addchar(&text, ']');
    luaL_pushresult(&text);
}

/* A value within a table as one short text, pushed. */
static void push_brief(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    const ed_tensor *t = handle_at(L, at, HANDLE_TENSOR);
    if (t) {
        push_brief_tensor(L, t);
    } else if (lua_type(L, at) == LUA_TTABLE && !luaL_getmetafield(L, at, "__tostring")) {
        lua_pushnil(L);
        bool any = lua_next(L, at);
        if (any) lua_pop(L, 2);
        lua_pushstring(L, any ? "{...}" : "{}");
    } else {
        luaL_tolstring(L, at, NULL);
    }
}

/* One item of a table with what stands before it, on this line or the next. */
static void print_item(lua_State *L, const char *key, int *column)
{
    size_t size;
    bool text = lua_type(L, -1) == LUA_TSTRING;
    push_brief(L, -1);
    const char *value = lua_tolstring(L, -1, &size);
    size_t shown = text && size > LONGEST_TEXT ? LONGEST_TEXT + 3 : size;
    int width = (int)(strlen(key) + (*key ? 3 : 0) + shown + (text ? 2 : 0));
    bool first = *column == 1;
    if (!first) fputs(*column + width > LINE ? ",\n " : ", ", stdout);
    *column = first ? 1 + width : *column + width > LINE ? 1 + width : *column + 2 + width;
    if (*key) printf("%s = ", key);
    if (text)
        print_quoted(value, size, LONGEST_TEXT);
    else
        fwrite(value, 1, size, stdout);
    lua_pop(L, 1);
}

static bool is_in_list(lua_State *L, int key, lua_Integer length)
{
    return lua_isinteger(L, key) && lua_tointeger(L, key) >= 1 && lua_tointeger(L, key) <= length;
}

/* Keys that are neither in the list part nor texts. */
static void print_others(lua_State *L, int at, lua_Integer length, int *column, int *shown)
{
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING || is_in_list(L, -2, length)) continue;
        if ((*shown)++ >= MOST_ITEMS) continue;
        push_brief(L, -2);
        lua_pushfstring(L, "[%s]", lua_tostring(L, -1));
        lua_pushvalue(L, -3);
        print_item(L, lua_tostring(L, -2), column);
        lua_pop(L, 3);
    }
}

/* The list, then names in order, then the rest; tables within are not gone into. */
static void print_table(lua_State *L, int at)
{
    int column = 1, shown = 0;
    size_t count;
    lua_Integer length = (lua_Integer)lua_rawlen(L, at);
    putchar('{');
    for (lua_Integer i = 1; i <= length && shown < MOST_ITEMS; i++, shown++) {
        lua_rawgeti(L, at, i);
        print_item(L, "", &column);
        lua_pop(L, 1);
    }
    if (shown < length) shown = (int)(length < INT32_MAX ? length : INT32_MAX);
    const char **keys = show_sorted_keys(L, at, &count);
    for (size_t i = 0; i < count; i++) {
        if (shown++ >= MOST_ITEMS) continue;
        lua_pushstring(L, keys[i]);
        lua_rawget(L, at);
        print_item(L, keys[i], &column);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    print_others(L, at, length, &column, &shown);
    if (shown > MOST_ITEMS) printf(", ... %d in all", shown);
    fputs("}\n", stdout);
}

void show_value(lua_State *L, int at)
{
    size_t size;
    at = lua_absindex(L, at);
    luaL_checkstack(L, 12, NULL);
    if (lua_type(L, at) == LUA_TSTRING) {
        const char *s = lua_tolstring(L, at, &size);
        print_quoted(s, size, SIZE_MAX);
        putchar('\n');
        return;
    }
    if (lua_type(L, at) == LUA_TTABLE) {
        if (luaL_getmetafield(L, at, "__tostring") == LUA_TNIL) {
            print_table(L, at);
            return;
        }
        lua_pop(L, 1);
    }
    const char *s = luaL_tolstring(L, at, &size);
    fwrite(s, 1, size, stdout);
    putchar('\n');
    lua_pop(L, 1);
}

const char *show_bytes(int64_t bytes, char (*room)[32])
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    double n = (double)bytes;
    int unit = 0;
    while (n >= 1000 && unit < 4) {
        n /= 1000;
        unit++;
    }
    snprintf(*room, sizeof *room, unit ? "%.3g %s" : "%.0f %s", n, units[unit]);
    return *room;
}
