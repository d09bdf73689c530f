#include "data/data.h"
#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/objects.h"
#include <string.h>

/*
 * Tables of numbers from CSV files in Lua.
 *
 *     local x, names = ed.read_csv("people.csv", {columns = {"age", "income"}, missing = 0})
 */

typedef struct csv {
    ed_read_csv_options options;
} csv;

/* The names in the table at `at` as one line of CSV, in the scope; NULL with an error. */
static const char *joined_names(lua_State *L, int at)
{
    const lua_Integer n = (lua_Integer)lua_rawlen(L, at);
    size_t used = 0, room = 1;
    char *line = NULL;
    for (int round = 0; round < 2; round++) {
        for (lua_Integer i = 1; i <= n; i++) {
            size_t length = 0;
            const bool is_text = lua_rawgeti(L, at, i) == LUA_TSTRING;
            const char *name = is_text ? lua_tolstring(L, -1, &length) : NULL;
            lua_pop(L, 1); /* the table keeps it */
            if (!name)
                return ed_fail(ED_INVALID_ARGUMENT, "read_csv: columns[%lld] is no string",
                               (long long)i);
            room += 2 * length + 3;
            if (!line) continue;
            if (used) line[used++] = ',';
            line[used++] = '"';
            for (size_t k = 0; k < length; k++) {
                if (name[k] == '"') line[used++] = '"';
                line[used++] = name[k];
            }
            line[used++] = '"';
        }
        if (!line && !(line = ed_scope_alloc(room))) return NULL;
    }
    line[used] = 0;
    return line;
}

static bool read_columns(lua_State *L, int at, const maker_field *field, void *to,
                         convert_room *room)
{
    (void)field, (void)room;
    const char **columns = to;
    if (lua_type(L, at) == LUA_TTABLE)
        *columns = joined_names(L, at);
    else if (lua_type(L, at) == LUA_TSTRING)
        *columns = lua_tostring(L, at);
    else
        return ed_fail(ED_INVALID_ARGUMENT,
                       "read_csv: columns is %s; a table of names, or one name, is expected",
                       convert_kind(L, at).s);
    return *columns != NULL;
}

static const maker_field fields[] = {
    {"columns", .offset = offsetof(csv, options.columns), .read = read_columns},
    ED_READ_CSV_FORMAT(MAKER_OPTION, csv){0},
};

static int push_names(lua_State *L)
{
    const char *const *names = lua_touserdata(L, 1);
    lua_newtable(L);
    for (lua_Integer i = 0; names[i]; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Pushes the table of the names; false with an error. */
static bool add_names(lua_State *L, const char *const *names)
{
    if (!names) return false;
    lua_pushcfunction(L, push_names);
    lua_pushlightuserdata(L, (void *)names);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK) return true;
    lua_pop(L, 1);
    return ed_fail(ED_OUT_OF_MEMORY, "Lua has no memory for the names of columns");
}

/* read_csv(path, {columns = , delimiter = , header = , missing = , dtype = }): [rows, columns], and
 * the columns' names. */
static int read_csv(lua_State *L)
{
    const char *path = maker_check_text(L, 1);
    csv c = {ED_COMPLETE(ED_READ_CSV_OPTIONS, ed_read_csv_options)};
    lua_settop(L, 2);
    luaL_checkstack(L, 2 * ED_MAX_RANK, NULL);
    handle *made = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    convert_room room = {.who = "read_csv"};
    const bool fine = maker_options(L, 2, fields, &c, &room);
    ed_tensor *t = fine ? ed_read_csv_with(path, &c.options) : NULL;
    const bool named = t && add_names(L, ed_read_csv_names_with(path, &c.options));
    if (named) handle_put(made, t);
    binding_close(&b);
    return named ? 2 : handle_raise(L);
}

void csv_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"read_csv", read_csv}, {NULL, NULL}};
    arguments_set(L, NULL, functions);
}
