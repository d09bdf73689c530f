#include "lua/wording.h"
#include "lua/objects.h"
#include <ctype.h>
#include <string.h>

/*
 * Messages and documentation of the library have C's names. In Lua
 *
 *     ed_cast                 is ed.cast              a function of the module
 *     ed_layer_reset_states   is layer:reset_states   a method
 *     ed_layer_sequential     is ed.layers.sequential a kind
 *     model_fit: ...          is fit: ...             the method that failed
 *     .partial = true         is partial = true       an option
 *
 * A name of C that is none of these stays; exceptions are in a table.
 */

static const char *const others[][2] = {
    {"ed_forward", "call"},
    {"ed_scalar", "ed.tensor"},
    {"ed_constant_of", "ed.tensor"},
    {"ed_input", "ed.input"},
    {"ed_model_predict_list", "layer:predict"},
    {"ed_metric_result_tensor", "metric:result"},
    {"ed_execute_list", "ed.execute"},
};

static const char module_key;

void wording_open(lua_State *L, int module)
{
    lua_pushvalue(L, module);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_key);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether what lies at the top of the stack is a table with that name; the top becomes `top`. */
static bool table_has(lua_State *L, int top, const char *name, size_t length)
{
    bool has = lua_istable(L, -1);
    if (has) {
        lua_pushlstring(L, name, length);
        has = lua_rawget(L, -2) != LUA_TNIL;
    }
    lua_settop(L, top);
    return has;
}

/* Whether the module, or its table of that name, has the name of so many bytes. */
static bool module_has(lua_State *L, const char *space, const char *name, size_t length)
{
    const int top = lua_gettop(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &module_key);
    if (space && lua_istable(L, -1)) {
        lua_pushstring(L, space);
        lua_rawget(L, -2);
    }
    return table_has(L, top, name, length);
}

/* Whether objects of the kind have a method of that name. */
static bool kind_has(lua_State *L, int kind, const char *name, size_t length)
{
    const int top = lua_gettop(L);
    help_push_methods(L, handle_kind_name((handle_kind)kind));
    return table_has(L, top, name, length);
}

/* Pushes the method that the words "kind_method" name; false, nothing pushed, if they name none. */
static bool push_method(lua_State *L, const char *s, size_t length, bool plain)
{
    for (int k = 0; k < HANDLE_KINDS; k++) {
        const char *kind = handle_kind_name((handle_kind)k), *owner = kind;
        size_t n = strlen(kind);
        if (k == HANDLE_LAYER && !strncmp(s, "model_", 6)) n = 5, kind = "model";
        if (length <= n + 1 || strncmp(s, kind, n) != 0 || s[n] != '_' ||
            !kind_has(L, k, s + n + 1, length - n - 1))
            continue;
        lua_pushlstring(L, s + n + 1, length - n - 1);
        if (plain) return true;
        lua_pushfstring(L, "%s:%s", owner, lua_tostring(L, -1));
        lua_remove(L, -2);
        return true;
    }
    return false;
}

/* Pushes what "family_kind" is called, as "ed.layers.dense"; false if there is no such kind. */
static bool push_kind(lua_State *L, const char *s, size_t length)
{
    char space[32];
    const char *rest = memchr(s, '_', length);
    const size_t n = rest ? (size_t)(rest - s) : sizeof space;
    if (n + 2 > sizeof space) return false;
    snprintf(space, sizeof space, "%.*s%s", (int)n, s, s[n - 1] == 's' ? "es" : "s");
    const size_t left = length - n - 1;
    if (!module_has(L, space, rest + 1, left)) return false;
    lua_pushlstring(L, rest + 1, left);
    lua_pushfstring(L, "ed.%s.%s", space, lua_tostring(L, -1));
    lua_remove(L, -2);
    return true;
}

/* Pushes Lua's name in place of the word, of so many bytes; false, nothing pushed, to keep it. */
static bool push_name(lua_State *L, const char *s, size_t length)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i][0]) == length && !strncmp(others[i][0], s, length))
            return lua_pushstring(L, others[i][1]), true;
    if (*s == '.' && length > 1 && !strncmp(s + length, " = ", 3))
        return lua_pushlstring(L, s + 1, length - 1), true;
    if (length < 4 || strncmp(s, "ed_", 3) != 0) return false;
    const char *bare = s + 3;
    const size_t left = length - 3;
    if (push_method(L, bare, left, false) || push_kind(L, bare, left)) return true;
    if (!module_has(L, NULL, bare, left)) return false;
    lua_pushlstring(L, bare, left);
    lua_pushfstring(L, "ed.%s", lua_tostring(L, -1));
    lua_remove(L, -2);
    return true;
}

static size_t word_length(const char *s)
{
    size_t n = 1;
    while (is_word(s[n])) n++;
    return n;
}

/* Appends to a text that has room for so many bytes. */
static size_t append_text(char *to, size_t used, size_t size, const char *s, size_t length)
{
    if (length > size - 1 - used) length = size - 1 - used;
    memcpy(to + used, s, length);
    to[used + length] = 0;
    return used + length;
}

void wording_push(lua_State *L, const char *s)
{
    char said[2048] = "", before = ' ';
    size_t used = 0, first = strcspn(s, ": ");
    luaL_checkstack(L, 8, NULL);
    if (s[first] == ':' && push_method(L, s, first, true)) {
        used = append_text(said, used, sizeof said, lua_tostring(L, -1), lua_rawlen(L, -1));
        lua_pop(L, 1);
        s += first;
    }
    while (*s) {
        const bool begins = *s == '.' || !strncmp(s, "ed_", 3);
        const size_t length = begins ? word_length(s) : 1;
        if (begins && strchr(" (\"'", before) && push_name(L, s, length)) {
            used = append_text(said, used, sizeof said, lua_tostring(L, -1), lua_rawlen(L, -1));
            lua_pop(L, 1);
        } else
            used = append_text(said, used, sizeof said, s, length);
        s += length;
        before = s[-1];
    }
    lua_pushstring(L, said);
}
