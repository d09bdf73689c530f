#include "lua/convert.h"
#include "tensor/core.h"
#include <string.h>

/* ---- Tables of numbers ----------------------------------------------------------------------- */

ed_dtype convert_dtype(const char *name)
{
    for (int d = ED_DTYPE_NONE + 1; d < ED_DTYPE_COUNT; d++)
        if (!strcmp(ed_dtype_name((ed_dtype)d), name)) return (ed_dtype)d;
    return ED_DTYPE_NONE;
}

typedef struct table {
    int rank;
    int64_t shape[ED_MAX_RANK];
    bool floats, wide, booleans, numbers;
} table;

static bool is_scalar(int type)
{
    return type == LUA_TNUMBER || type == LUA_TBOOLEAN;
}

/* Rank and extents by the first elements; all others have to agree. */
static bool measure(lua_State *L, int at, table *t)
{
    lua_pushvalue(L, at);
    while (lua_type(L, -1) == LUA_TTABLE) {
        if (t->rank == ED_MAX_RANK || !lua_checkstack(L, 4)) {
            ed_fail(ED_INVALID_ARGUMENT, "tensor: tables within tables, more than %d deep",
                    ED_MAX_RANK);
            return false;
        }
        t->shape[t->rank++] = (int64_t)lua_rawlen(L, -1);
        lua_rawgeti(L, -1, 1);
    }
    return true;
}

static bool note(lua_State *L, table *t)
{
    if (lua_isboolean(L, -1))
        t->booleans = true;
    else {
        t->numbers = true;
        if (!lua_isinteger(L, -1))
            t->floats = true;
        else if (lua_tointeger(L, -1) != (int32_t)lua_tointeger(L, -1))
            t->wide = true;
    }
    if (!t->booleans || !t->numbers) return true;
    return ed_fail(ED_INVALID_ARGUMENT, "tensor: numbers and booleans in one table"), false;
}

static void store(lua_State *L, ed_dtype dtype, char *data, int64_t i)
{
    if (lua_isboolean(L, -1))
        dtype_store(dtype, data, i, lua_toboolean(L, -1));
    else if (dtype == ED_INT64 && lua_isinteger(L, -1))
        ((int64_t *)data)[i] = lua_tointeger(L, -1);
    else
        dtype_store(dtype, data, i, lua_tonumber(L, -1));
}

/* Visits all elements in order: without data, to see their kinds; with data, to store them. The
 * depth of recursion is the rank. */
static bool visit(lua_State *L, table *t, int depth, ed_dtype dtype, char *data, int64_t *i)
{
    if (depth == t->rank) {
        if (!is_scalar(lua_type(L, -1)))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "tensor: element %lld is a %s; a number or boolean is expected",
                           (long long)*i + 1, luaL_typename(L, -1)),
                   false;
        if (!data && !note(L, t)) return false;
        if (data) store(L, dtype, data, *i);
        ++*i;
        return true;
    }
    if (lua_type(L, -1) != LUA_TTABLE || (int64_t)lua_rawlen(L, -1) != t->shape[depth])
        return ed_fail(ED_INVALID_ARGUMENT,
                       "tensor: tables of unequal length: %lld elements are expected at depth %d",
                       (long long)t->shape[depth], depth + 1),
               false;
    for (int64_t k = 1; k <= t->shape[depth]; k++) {
        lua_rawgeti(L, -1, k);
        bool fine = visit(L, t, depth + 1, dtype, data, i);
        lua_pop(L, 1);
        if (!fine) return false;
    }
    return true;
}

static ed_dtype natural(const table *t)
{
    return t->booleans                ? ED_BOOL
           : t->floats || !t->numbers ? ED_FLOAT32
           : t->wide                  ? ED_INT64
                                      : ED_INT32;
}

/* Whether the elements fit a dtype that was asked for. */
static bool check_fit(const table *t, ed_dtype dtype)
{
    if (ed_dtype_is_float(dtype) || !t->floats) return true;
    return ed_fail(ED_INVALID_ARGUMENT, "tensor: fractions can't be %s", ed_dtype_name(dtype)),
           false;
}

static ed_tensor *from_table(lua_State *L, int at, ed_dtype dtype)
{
    table t = {0};
    int top = lua_gettop(L);
    bool fine = lua_checkstack(L, 2 * ED_MAX_RANK + 4) && measure(L, at, &t);
    lua_settop(L, top);
    int64_t seen = 0;
    lua_pushvalue(L, at);
    fine = fine && visit(L, &t, 0, dtype, NULL, &seen) && (!dtype || check_fit(&t, dtype));
    if (!dtype) dtype = natural(&t);
    ed_tensor *made = fine ? scope_give(tensor_new(dtype, t.rank, t.shape)) : NULL;
    seen = 0;
    if (made) visit(L, &t, 0, dtype, made->data, &seen);
    lua_settop(L, top);
    return made;
}

static bool holds_tensors(lua_State *L, int at)
{
    lua_rawgeti(L, at, 1);
    bool holds = handle_at(L, -1, HANDLE_TENSOR) != NULL;
    lua_pop(L, 1);
    return holds;
}

ed_tensor *convert_operand(lua_State *L, int at, ed_dtype dtype)
{
    at = lua_absindex(L, at);
    ed_tensor *t = handle_at(L, at, HANDLE_TENSOR);
    if (t) return t;
    switch (lua_type(L, at)) {
    case LUA_TNUMBER:
        t = lua_isinteger(L, at) ? ed_integer(lua_tointeger(L, at))
                                 : ed_number(lua_tonumber(L, at));
        break;
    case LUA_TBOOLEAN: return ed_constant(ED_VALUES(bool, lua_toboolean(L, at)), ED_SHAPE());
    case LUA_TTABLE:
        if (!holds_tensors(L, at)) return from_table(L, at, dtype);
        ed_list *list = convert_list(L, at);
        return list ? ed_stack(list) : NULL;
    default:
        return ed_fail(ED_INVALID_ARGUMENT,
                       "a tensor, a number or a table of numbers is expected, not a %s%s",
                       luaL_typename(L, at), lua_isuserdata(L, at) ? " (or a closed one)" : "");
    }
    return dtype ? ed_scalar_with(t, &(ed_scalar_options){.dtype = dtype}) : t;
}

bool convert_has_names(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    if (lua_type(L, at) != LUA_TTABLE || !lua_checkstack(L, 4)) return false;
    bool has = false;
    lua_pushnil(L);
    while (!has && lua_next(L, at)) {
        has = lua_type(L, -2) == LUA_TSTRING;
        lua_pop(L, has ? 2 : 1);
    }
    return has;
}

bool convert_is_operand(lua_State *L, int at)
{
    if (lua_type(L, at) != LUA_TTABLE)
        return !lua_isnoneornil(L, at) && lua_type(L, at) != LUA_TSTRING;
    return !convert_has_names(L, at);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

ed_list *convert_list(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    if (lua_type(L, at) != LUA_TTABLE)
        return ed_fail(ED_INVALID_ARGUMENT, "a table of tensors is expected, not a %s",
                       luaL_typename(L, at));
    int64_t count = (int64_t)lua_rawlen(L, at);
    ed_list *list = lua_checkstack(L, 4) ? list_new(count) : NULL;
    for (int64_t i = 0; list && i < count; i++) {
        lua_rawgeti(L, at, i + 1);
        ed_tensor *t = convert_operand(L, -1, ED_DTYPE_NONE);
        lua_pop(L, 1);
        if (!t) {
            ed_release(list);
            return NULL;
        }
        list->items[i] = ed_retain(t);
    }
    return scope_give(list);
}

void convert_push_list(lua_State *L, ed_list *list)
{
    int64_t n = ed_list_size(list);
    lua_createtable(L, (int)n, 0);
    for (int64_t i = 0; i < n; i++) {
        ed_tensor *t = list->items[i];
        if (t)
            handle_put(handle_new(L, HANDLE_TENSOR), t);
        else
            lua_pushboolean(L, false);
        lua_rawseti(L, -2, i + 1);
    }
}

void convert_push_ints(lua_State *L, ed_ints list)
{
    lua_createtable(L, (int)list.count, 0);
    for (int64_t i = 0; i < list.count; i++) {
        lua_pushinteger(L, list.values[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* ---- Elements -------------------------------------------------------------------------------- */

void convert_push_element(lua_State *L, ed_dtype dtype, const void *data, int64_t i)
{
    if (dtype == ED_BOOL)
        lua_pushboolean(L, ((const uint8_t *)data)[i]);
    else if (dtype == ED_INT64)
        lua_pushinteger(L, ((const int64_t *)data)[i]);
    else if (ed_dtype_is_float(dtype) || dtype == ED_UINT64)
        lua_pushnumber(L, dtype_load(dtype, data, i));
    else
        lua_pushinteger(L, (lua_Integer)dtype_load(dtype, data, i));
}

static void push_level(lua_State *L, const ed_tensor *t, const void *data, int depth, int64_t *i)
{
    if (depth == t->rank) {
        convert_push_element(L, t->dtype, data, (*i)++);
        return;
    }
    luaL_checkstack(L, 4, NULL);
    lua_createtable(L, (int)t->shape[depth], 0);
    for (int64_t k = 1; k <= t->shape[depth]; k++) {
        push_level(L, t, data, depth + 1, i);
        lua_rawseti(L, -2, k);
    }
}

void convert_push_elements(lua_State *L, const ed_tensor *t)
{
    int64_t i = 0;
    push_level(L, t, t->data, 0, &i);
}

/* ---- Options --------------------------------------------------------------------------------- */

bool convert_counts(const char *name)
{
    return !strcmp(name, "axis") || !strcmp(name, "axes") || !strcmp(name, "perm") ||
           !strcmp(name, "i");
}

static bool from_one(const convert_room *room, const char *name, int64_t *value)
{
    if (*value == 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: %s is 0; counting begins at 1 (and -1 is the last)", room->who, name),
               false;
    if (*value > 0) --*value;
    return true;
}

static bool wrong_kind(lua_State *L, int at, const convert_room *room, const char *name,
                       const char *expected)
{
    ed_fail(ED_INVALID_ARGUMENT, "%s: %s is a %s; %s is expected", room->who, name,
            luaL_typename(L, at), expected);
    return false;
}

static bool whole(lua_State *L, int at, const ed_attr *field, convert_room *room, int64_t *value)
{
    int fine;
    *value = lua_tointegerx(L, at, &fine);
    if (!fine || lua_type(L, at) != LUA_TNUMBER)
        return wrong_kind(L, at, room, field->name, "a whole number");
    return !convert_counts(field->name) || from_one(room, field->name, value);
}

static bool list_of_ints(lua_State *L, int at, const ed_attr *field, ed_ints *list,
                         convert_room *room)
{
    bool single = lua_type(L, at) == LUA_TNUMBER;
    if (!single && lua_type(L, at) != LUA_TTABLE)
        return wrong_kind(L, at, room, field->name, "a whole number or a table of them");
    int64_t count = single ? 1 : (int64_t)lua_rawlen(L, at);
    if (count > (int64_t)(sizeof room->numbers / sizeof *room->numbers) - room->used)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: %s has %lld numbers; at most %d are expected",
                       room->who, field->name, (long long)count, ED_MAX_RANK),
               false;
    int64_t *to = room->numbers + room->used;
    for (int64_t i = 0; i < count; i++) {
        if (single)
            lua_pushvalue(L, at);
        else
            lua_rawgeti(L, at, i + 1);
        bool fine = whole(L, -1, field, room, &to[i]);
        lua_pop(L, 1);
        if (!fine) return false;
    }
    room->used += (int)count;
    *list = (ed_ints){to, count};
    return true;
}

static bool dtype_option(lua_State *L, int at, const ed_attr *field, ed_dtype *dtype,
                         const convert_room *room)
{
    if (lua_type(L, at) != LUA_TSTRING)
        return wrong_kind(L, at, room, field->name, "the name of a dtype");
    *dtype = convert_dtype(lua_tostring(L, at));
    if (*dtype) return true;
    return ed_fail(ED_INVALID_ARGUMENT, "%s: '%s' is no dtype; float32, int32, bool ... are",
                   room->who, lua_tostring(L, at)),
           false;
}

/* C's texts end at a zero byte. */
static bool plain_text(lua_State *L, int at, const ed_attr *field, const char **to,
                       const convert_room *room)
{
    size_t size;
    *to = lua_tolstring(L, at, &size);
    if (strlen(*to) == size) return true;
    return ed_fail(ED_INVALID_ARGUMENT, "%s: there is a zero byte in %s", room->who, field->name),
           false;
}

bool convert_field(lua_State *L, int at, const ed_attr *field, void *structure, convert_room *room)
{
    at = lua_absindex(L, at);
    void *to = (char *)structure + field->offset;
    if (!lua_checkstack(L, 4)) return ed_fail(ED_OUT_OF_MEMORY, "Lua's stack is full"), false;
    switch (field->type) {
    case ED_ATTR_BOOL:
        if (!lua_isboolean(L, at)) return wrong_kind(L, at, room, field->name, "a boolean");
        *(bool *)to = lua_toboolean(L, at);
        return true;
    case ED_ATTR_INT: return whole(L, at, field, room, to);
    case ED_ATTR_FLOAT:
        if (lua_type(L, at) != LUA_TNUMBER) return wrong_kind(L, at, room, field->name, "a number");
        *(double *)to = lua_tonumber(L, at);
        return true;
    case ED_ATTR_DTYPE: return dtype_option(L, at, field, to, room);
    case ED_ATTR_INTS: return list_of_ints(L, at, field, to, room);
    case ED_ATTR_STRING:
        if (lua_type(L, at) != LUA_TSTRING) return wrong_kind(L, at, room, field->name, "a text");
        return plain_text(L, at, field, to, room);
    default: return wrong_kind(L, at, room, field->name, "something that Lua can't give");
    }
}

static const ed_attr *find_field(const ed_attr *schema, const char *name)
{
    for (; schema && schema->name; schema++)
        if (schema->type != ED_ATTR_STATE && schema->type != ED_ATTR_OBJECT &&
            !strcmp(schema->name, name))
            return schema;
    return NULL;
}

static bool unknown_option(const ed_attr *schema, const char *name, const convert_room *room)
{
    char known[256] = "";
    for (; schema && schema->name; schema++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", schema->name);
    }
    ed_fail(ED_INVALID_ARGUMENT, "%s: there is no option %s%s%s", room->who, name,
            *known ? "; there are " : "", known);
    return false;
}

bool convert_options(lua_State *L, int at, const ed_attr *schema, void *structure,
                     convert_room *room)
{
    if (lua_type(L, at) != LUA_TTABLE) return true;
    at = lua_absindex(L, at);
    if (!lua_checkstack(L, 4)) return ed_fail(ED_OUT_OF_MEMORY, "Lua's stack is full"), false;
    lua_pushnil(L);
    while (lua_next(L, at)) {
        bool fine = true;
        if (lua_type(L, -2) == LUA_TSTRING) {
            const char *name = lua_tostring(L, -2);
            const ed_attr *field = find_field(schema, name);
            fine = field ? convert_field(L, -1, field, structure, room)
                         : unknown_option(schema, name, room);
        }
        if (!fine) return lua_pop(L, 2), false;
        lua_pop(L, 1);
    }
    return true;
}
