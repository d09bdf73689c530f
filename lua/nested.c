#include "lua/nested.h"
#include "lua/objects.h"

enum { DEEPEST = 100 };

/* What is flattened, and where to. */
typedef struct flat {
    const char *who;
    int list; /* index of the stack */
    lua_Integer count;
} flat;

bool nested_is(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    if (lua_type(L, at) != LUA_TTABLE) return false;
    luaL_checkstack(L, 4, NULL);
    bool is = false;
    lua_pushnil(L);
    while (!is && lua_next(L, at)) {
        is = lua_type(L, -2) == LUA_TSTRING || lua_type(L, -1) == LUA_TTABLE;
        lua_pop(L, is ? 2 : 1);
    }
    return is;
}

static void push_flat(lua_State *L, flat *to, int at, int depth);

/* Pops the value at the top and pushes what stands for it in the shape. */
static void add(lua_State *L, flat *to, int depth)
{
    if (lua_type(L, -1) == LUA_TTABLE) {
        push_flat(L, to, lua_gettop(L), depth + 1);
        lua_remove(L, -2);
        return;
    }
    lua_rawseti(L, to->list, ++to->count);
    lua_pushinteger(L, to->count);
}

static void add_list(lua_State *L, flat *to, int at, int depth)
{
    const lua_Integer n = (lua_Integer)lua_rawlen(L, at);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, at, i);
        if (lua_isnil(L, -1))
            handle_fail(L, "%s: the entry %I of a table is nil", to->who, (LUAI_UACINT)i);
        add(L, to, depth);
        lua_rawseti(L, -2, i);
    }
}

static void add_names(lua_State *L, flat *to, int at, int depth)
{
    const int shape = lua_gettop(L);
    lua_Integer n;
    const char **names = objects_entries(L, at, to->who, &n);
    const int values = lua_gettop(L);
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, values, i + 1);
        add(L, to, depth);
        lua_setfield(L, shape, names[i]);
    }
    lua_settop(L, shape);
}

/* Pushes the shape of the table at `at`. */
static void push_flat(lua_State *L, flat *to, int at, int depth)
{
    if (depth > DEEPEST)
        handle_fail(L, "%s: tables within tables, more than %d deep", to->who, DEEPEST);
    luaL_checkstack(L, 12, NULL);
    lua_newtable(L);
    if (!convert_has_names(L, at))
        add_list(L, to, at, depth);
    else if (lua_rawlen(L, at))
        handle_fail(L, "%s: a table has names or is a list, not both", to->who);
    else
        add_names(L, to, at, depth);
}

void nested_push(lua_State *L, int at, const char *who)
{
    at = lua_absindex(L, at);
    luaL_checkstack(L, 4, NULL);
    lua_newtable(L);
    push_flat(L, &(flat){.who = who, .list = lua_gettop(L)}, at, 0);
}

void nested_take(lua_State *L, int at, const char *who)
{
    at = lua_absindex(L, at);
    if (!nested_is(L, at)) {
        lua_pushnil(L);
        return;
    }
    nested_push(L, at, who);
    lua_pushvalue(L, -2);
    lua_replace(L, at);
    lua_remove(L, -2);
}

static void follow(lua_State *L, int shape, int other, int list, const char *who)
{
    luaL_checkstack(L, 8, NULL);
    if (lua_type(L, other) != LUA_TTABLE)
        handle_fail(L, "%s: a table of the same form is expected, not %s", who,
                    convert_kind(L, other).s);
    for (lua_pushnil(L); lua_next(L, shape); lua_pop(L, 2)) {
        lua_pushvalue(L, -2); /* key, number or table, key */
        lua_rawget(L, other);
        if (lua_type(L, -2) == LUA_TTABLE) {
            follow(L, lua_gettop(L) - 1, lua_gettop(L), list, who);
            continue;
        }
        if (lua_isnil(L, -1))
            handle_fail(L, "%s: the entry %s is missing", who, luaL_tolstring(L, -3, NULL));
        lua_pushvalue(L, -1);
        lua_rawseti(L, list, lua_tointeger(L, -3));
    }
}

void nested_follow(lua_State *L, int shape, int other, const char *who)
{
    shape = lua_absindex(L, shape);
    other = lua_absindex(L, other);
    luaL_checkstack(L, 4, NULL);
    lua_newtable(L);
    follow(L, shape, other, lua_gettop(L), who);
}

void nested_fill(lua_State *L, int shape, int list)
{
    shape = lua_absindex(L, shape);
    list = lua_absindex(L, list);
    luaL_checkstack(L, 8, NULL);
    for (lua_pushnil(L); lua_next(L, shape); lua_pop(L, 1)) {
        if (lua_type(L, -1) == LUA_TTABLE) {
            nested_fill(L, lua_gettop(L), list);
            continue;
        }
        lua_pushvalue(L, -2);                       /* key, number, key */
        lua_rawgeti(L, list, lua_tointeger(L, -2)); /* key, number, key, value */
        lua_rawset(L, shape);
    }
}

int nested_flatten(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    nested_push(L, 1, luaL_checkstring(L, 2));
    return 2;
}

int nested_unflatten(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    nested_fill(L, 1, 2);
    lua_settop(L, 1);
    return 1;
}
