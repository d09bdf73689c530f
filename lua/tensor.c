#include "lua/tensor.h"
#include "lua/convert.h"
#include "lua/ops.h"
#include "tensor/core.h"
#include <stdlib.h>
#include <string.h>

/*
 * Tensors in Lua: operators, places, properties.
 *
 * Places count from 1, as everything in Lua does, and from -1 at the end; a range has both its
 * ends, as in string.sub:
 *
 *     x[2]                the second row           x[-1]        the last
 *     x[{2, 3}]           row 2, column 3          x[{{1, 2}}]  rows 1 and 2
 *     x[{{}, 3}]          column 3                 x[{{-1, 1, -1}}]  rows backward
 *     x["1:2, 3"]         the same as text: first:last:step
 *     x[mask]             the elements where a bool tensor of x's shape is true
 *
 * Numbers inside tensors (labels, indices of gather, results of argmax) are data and begin at 0.
 */

/* ---- Places ---------------------------------------------------------------------------------- */

typedef struct places {
    int count;
    struct {
        bool single;
        int64_t first, last, step; /* from 1; last 0: to the end */
    } at[ED_MAX_RANK];
} places;

static bool bad(const char *why)
{
    return ed_fail(ED_INVALID_ARGUMENT, "index: %s", why), false;
}

static bool whole(lua_State *L, int at, int64_t *value)
{
    int fine;
    *value = lua_tointegerx(L, at, &fine);
    return (fine && lua_type(L, at) == LUA_TNUMBER) || bad("whole numbers are expected");
}

/* {}, {first, last}, {first, last, step} at the top of the stack. */
static bool read_range(lua_State *L, places *p)
{
    int64_t n = (int64_t)lua_rawlen(L, -1), numbers[3] = {1, 0, 1};
    if (n > 3) return bad("a range is {first, last, step}");
    for (int64_t i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i + 1);
        bool fine = whole(L, -1, &numbers[i]);
        lua_pop(L, 1);
        if (!fine) return false;
    }
    if (n && !numbers[0]) return bad("counting begins at 1 (and -1 is the last)");
    if (!numbers[2]) return bad("a step of 0");
    p->at[p->count].single = false;
    p->at[p->count].first = numbers[0];
    p->at[p->count].last = numbers[1];
    p->at[p->count].step = numbers[2];
    return true;
}

static bool read_single(int64_t i, places *p)
{
    if (!i) return bad("counting begins at 1 (and -1 is the last)");
    p->at[p->count].single = true;
    p->at[p->count].first = i;
    return true;
}

static bool read_table(lua_State *L, int at, places *p)
{
    int64_t n = (int64_t)lua_rawlen(L, at), i;
    if (n > ED_MAX_RANK) return bad("more places than a tensor has axes");
    for (p->count = 0; p->count < n; p->count++) {
        lua_rawgeti(L, at, p->count + 1);
        bool fine = lua_type(L, -1) == LUA_TTABLE ? read_range(L, p)
                                                  : whole(L, -1, &i) && read_single(i, p);
        lua_pop(L, 1);
        if (!fine) return false;
    }
    return true;
}

/* "2", "1:3", ":", "::-1" between commas. */
static bool read_text(const char *s, places *p)
{
    p->count = 0;
    for (;;) {
        int64_t numbers[3] = {0, 0, 0};
        int n = 0;
        bool given[3] = {false, false, false};
        for (;; s++) {
            s += strspn(s, " ");
            char *end;
            long long value = strtoll(s, &end, 10);
            if (end != s) numbers[n] = value, given[n] = true;
            s = end + strspn(end, " ");
            if (*s != ':') break;
            if (++n > 2) return bad("a range is first:last:step");
        }
        if ((*s && *s != ',') || p->count == ED_MAX_RANK || (!n && !given[0]))
            return bad("'first:last:step' between commas is expected");
        if (!n && !read_single(numbers[0], p)) return false;
        if (n) {
            if ((given[0] && !numbers[0]) || (given[2] && !numbers[2]))
                return bad("counting begins at 1, and no step is 0");
            p->at[p->count].single = false;
            p->at[p->count].step = given[2] ? numbers[2] : 1;
            p->at[p->count].first = given[0] ? numbers[0] : p->at[p->count].step < 0 ? -1 : 1;
            p->at[p->count].last = numbers[1];
        }
        p->count++;
        if (!*s) return true;
        s++;
    }
}

/* The view of t at the places: single ones lose their axis. */
static ed_tensor *view_at(ed_tensor *t, const places *p)
{
    const ed_tensor *v = tensor_read(t);
    if (p->count > v->rank)
        return ed_fail(ED_INVALID_ARGUMENT, "index: %d places for %s", p->count,
                       text_of_tensor(v).s);
    int64_t begin[ED_MAX_RANK], end[ED_MAX_RANK], step[ED_MAX_RANK], gone[ED_MAX_RANK];
    int n_gone = 0;
    for (int i = 0; i < p->count; i++) {
        int64_t extent = v->shape[i], first = p->at[i].first, last = p->at[i].last;
        int64_t from = first > 0 ? first - 1 : first + extent;
        step[i] = p->at[i].single ? 1 : p->at[i].step;
        begin[i] = from;
        if (p->at[i].single) {
            if (from < 0 || from >= extent)
                return ed_fail(ED_OUT_OF_RANGE, "index: there is no place %lld along axis %d of %s",
                               (long long)first, i + 1, text_of_tensor(v).s);
            end[i] = from + 1;
            gone[n_gone++] = i;
            continue;
        }
        /* both ends are in the range; the op's `end` is not */
        int64_t to = last > 0 ? last - 1 : last + extent;
        if (from < 0) begin[i] = 0;
        if (from >= extent) begin[i] = step[i] < 0 ? extent - 1 : extent;
        if (!last)
            end[i] = ED_END;
        else if (step[i] > 0)
            end[i] = to < 0 ? 0 : to + 1;
        else
            end[i] = to <= 0 ? ED_END : to - 1;
        if (from < 0 && step[i] < 0) end[i] = 0; /* nothing lies before the first */
    }
    ed_tensor *y =
        ed_slice(t, .begin = {begin, p->count}, .end = {end, p->count}, .step = {step, p->count});
    return y && n_gone ? ed_squeeze(y, .axis = {gone, n_gone}) : y;
}

/* The elements where the mask is true, in one row; the gradient flows back to them. */
static ed_tensor *masked(ed_tensor *t, ed_tensor *mask)
{
    const ed_tensor *v = tensor_read(t);
    if (mask->rank != v->rank ||
        memcmp(mask->shape, v->shape, (size_t)v->rank * sizeof *v->shape) != 0)
        return ed_fail(ED_INVALID_ARGUMENT, "index: a mask of %s for %s", text_of_tensor(mask).s,
                       text_of_tensor(v).s);
    const uint8_t *bits = ed_data(mask);
    int64_t n = 0;
    for (int64_t i = 0; bits && i < mask->size; i++) n += bits[i];
    ed_tensor *where = bits ? scope_give(tensor_new(ED_INT64, 1, &n)) : NULL;
    if (!where) return NULL;
    n = 0;
    for (int64_t i = 0; i < mask->size; i++)
        if (bits[i]) ((int64_t *)where->data)[n++] = i;
    return ed_gather(ed_reshape(t, ED_SHAPE(-1)), where, .axis = 0);
}

static ed_tensor *read_places(lua_State *L, ed_tensor *t, int key)
{
    places p = {.count = 1};
    int64_t i;
    ed_tensor *mask = handle_at(L, key, HANDLE_TENSOR);
    if (mask && mask->dtype == ED_BOOL) return masked(t, tensor_read(mask));
    switch (lua_type(L, key)) {
    case LUA_TNUMBER:
        p.count = 0;
        if (!whole(L, key, &i) || !read_single(i, &p)) return NULL;
        p.count = 1;
        return view_at(t, &p);
    case LUA_TTABLE: return read_table(L, key, &p) ? view_at(t, &p) : NULL;
    case LUA_TSTRING: return read_text(lua_tostring(L, key), &p) ? view_at(t, &p) : NULL;
    default:
        return ed_fail(ED_INVALID_ARGUMENT,
                       "index: a number, a table of places or a bool tensor is expected, not a %s",
                       luaL_typename(L, key));
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool push_property(lua_State *L, const ed_tensor *t, const char *key)
{
    if (!strcmp(key, "shape"))
        convert_push_ints(L, ed_shape(t));
    else if (!strcmp(key, "dtype"))
        lua_pushstring(L, ed_dtype_name(t->dtype));
    else if (!strcmp(key, "rank"))
        lua_pushinteger(L, t->rank);
    else if (!strcmp(key, "size"))
        lua_pushinteger(L, t->size);
    else if (!strcmp(key, "name"))
        lua_pushstring(L, ed_name(t));
    else if (!strcmp(key, "trainable"))
        lua_pushboolean(L, ed_is_trainable(t));
    else
        return false;
    return true;
}

static bool is_places(const char *key)
{
    return *key && strspn(key, "0123456789:-, ") == strlen(key);
}

/* Methods, properties, places. The methods are the function's upvalue. */
static int index_of(lua_State *L)
{
    ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);
    if (lua_type(L, 2) == LUA_TSTRING) {
        lua_pushvalue(L, 2);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
        const char *key = lua_tostring(L, 2);
        if (push_property(L, t, key)) return 1;
        if (!is_places(key)) return luaL_error(L, "a tensor has no field or method '%s'", key);
    }
    handle *h = handle_new(L, HANDLE_TENSOR);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    ed_tensor *y = read_places(L, t, 2);
    return binding_finish(L, &b, h, y);
}

/* ---- Writing, for variables ------------------------------------------------------------------ */

/* A copy of the value with the places replaced: where each element lies is found by the same view
 * of their numbers. */
static bool write_places(lua_State *L, ed_tensor *v, int key, int value)
{
    ed_tensor *numbers =
        ed_reshape(ed_range(0, (double)v->size, 1, .dtype = ED_INT64), ed_shape(v));
    ed_tensor *where = read_places(L, numbers, key);
    ed_tensor *given = convert_operand(L, value, ED_DTYPE_NONE);
    if (!where || !given) return false;
    ed_tensor *typed = given->flags & TENSOR_WEAK ? scope_give(number_as(given, v->dtype)) : given;
    ed_tensor *spread = typed ? ed_broadcast_to(typed, ed_shape(where)) : NULL;
    if (!spread) return false;
    if (spread->dtype != v->dtype)
        return ed_fail(ED_INVALID_ARGUMENT, "assign: the variable is %s, the value %s",
                       ed_dtype_name(v->dtype), ed_dtype_name(spread->dtype)),
               false;
    const int64_t *to = ed_data(where);
    const char *from = ed_data(spread);
    size_t size = dtype_size(v->dtype);
    char *data = to && from ? variable_write(v, true) : NULL;
    for (int64_t i = 0; data && i < where->size; i++)
        memcpy(data + (size_t)to[i] * size, from + (size_t)i * size, size);
    return data;
}

static int new_index(lua_State *L)
{
    ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);
    if (!ed_is_variable(t))
        return luaL_error(L, "a tensor never changes; only variables can be assigned to");
    luaL_checkstack(L, 2 * ED_MAX_RANK + 16, NULL);
    if (lua_type(L, 2) == LUA_TSTRING && !strcmp(lua_tostring(L, 2), "trainable")) {
        ed_set_trainable(t, lua_toboolean(L, 3));
        return 0;
    }
    binding b = binding_open(L);
    bool fine = write_places(L, t, 2, 3);
    binding_close(&b);
    return fine ? 0 : handle_raise(L);
}

/* ---- Methods --------------------------------------------------------------------------------- */

static int length(lua_State *L)
{
    const ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);
    if (!t->rank) return luaL_error(L, "a scalar has no length");
    lua_pushinteger(L, t->shape[0]);
    return 1;
}

static int to_string(lua_State *L)
{
    const ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);
    luaL_checkstack(L, 4, NULL);
    binding b = binding_open(L);
    const char *s = ed_to_string(t);
    bool fine = s && handle_push_text(L, s);
    binding_close(&b);
    return fine ? 1 : handle_raise(L);
}

/* The elements as tables; a tensor of one element as a number. */
static int to_table(lua_State *L)
{
    ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);
    handle *h = handle_new(L, HANDLE_TENSOR); /* holds the contiguous copy while tables are made */
    h->object = tensor_contiguous(tensor_read(t));
    if (!h->object) return handle_raise(L);
    convert_push_elements(L, h->object);
    return 1;
}

/* The one element of a tensor of any rank. */
static int item(lua_State *L)
{
    const ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);
    if (t->size != 1)
        return luaL_error(L, "item: the tensor has %I elements", (lua_Integer)t->size);
    const ed_tensor *value = tensor_read(t); /* one element: any layout is contiguous */
    convert_push_element(L, value->dtype, value->data, 0);
    return 1;
}

/* for i, row in pairs(x) */
static int next_row(lua_State *L)
{
    const ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);
    lua_Integer last = luaL_optinteger(L, 2, 0);
    if (!t->rank || last >= t->shape[0]) return 0;
    lua_settop(L, 1);
    lua_pushinteger(L, last + 1);
    lua_pushvalue(L, -1);
    lua_pushvalue(L, 1);
    lua_insert(L, -2);
    lua_gettable(L, -2);
    lua_remove(L, -2);
    return 2;
}

static int rows(lua_State *L)
{
    const ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);
    if (!t->rank) return luaL_error(L, "a scalar has no rows");
    lua_settop(L, 1);
    lua_pushcfunction(L, next_row);
    lua_insert(L, 1);
    lua_pushinteger(L, 0);
    return 3;
}

#define METHOD(name, call)                                                                         \
    static int name(lua_State *L)                                                                  \
    {                                                                                              \
        ed_tensor *t = handle_check(L, 1, HANDLE_TENSOR);                                          \
        handle *h = handle_new(L, HANDLE_TENSOR);                                                  \
        binding b = binding_open(L);                                                               \
        ed_tensor *y = call;                                                                       \
        handle_put(h, y);                                                                          \
        binding_close(&b);                                                                         \
        return handle_return(L, y);                                                                \
    }

METHOD(value, ed_value(t))
METHOD(stop_gradient, ed_stop_gradient(t))

static int is_variable(lua_State *L)
{
    lua_pushboolean(L, ed_is_variable(handle_check(L, 1, HANDLE_TENSOR)));
    return 1;
}

static int is_contiguous(lua_State *L)
{
    lua_pushboolean(L, ed_is_contiguous(handle_check(L, 1, HANDLE_TENSOR)));
    return 1;
}

static int strides(lua_State *L)
{
    convert_push_ints(L, ed_strides(handle_check(L, 1, HANDLE_TENSOR)));
    return 1;
}

static int id(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)ed_id(handle_check(L, 1, HANDLE_TENSOR)));
    return 1;
}

typedef ed_tensor *assignment(ed_tensor *variable, ed_tensor *value);

/* v:assign(x) and its kin return the variable. */
static int assign_by(lua_State *L, assignment *change)
{
    ed_tensor *v = handle_check(L, 1, HANDLE_TENSOR);
    luaL_checkstack(L, 2 * ED_MAX_RANK + 16, NULL);
    binding b = binding_open(L);
    ed_tensor *given = convert_operand(L, 2, ED_DTYPE_NONE);
    bool fine = given && change(v, given);
    binding_close(&b);
    if (!fine) return handle_raise(L);
    lua_settop(L, 1);
    return 1;
}

static int assign(lua_State *L)
{
    return assign_by(L, ed_assign_with);
}

static int assign_add(lua_State *L)
{
    return assign_by(L, ed_assign_add_with);
}

static int assign_sub(lua_State *L)
{
    return assign_by(L, ed_assign_sub_with);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* tensor(table or number, dtype) */
static int tensor(lua_State *L)
{
    const char *name = luaL_optstring(L, 2, NULL);
    ed_dtype dtype = name ? convert_dtype(name) : ED_DTYPE_NONE;
    if (name && !dtype) return luaL_argerror(L, 2, "the name of a dtype is expected");
    handle *h = handle_new(L, HANDLE_TENSOR);
    luaL_checkstack(L, 2 * ED_MAX_RANK + 16, NULL);
    binding b = binding_open(L);
    ed_tensor *t = convert_operand(L, 1, dtype);
    if (t && t->flags & TENSOR_WEAK) t = ed_scalar_with(t, &(ed_scalar_options){.dtype = dtype});
    if (t && dtype && t->dtype != dtype) t = ed_cast(t, dtype);
    return binding_finish(L, &b, h, t);
}

/* variable(initial, {name = , trainable = }) */
static int variable_of(lua_State *L)
{
    ed_variable_options options = {0};
    if (lua_type(L, 2) == LUA_TTABLE) {
        lua_getfield(L, 2, "name");
        options.name = luaL_optstring(L, -1, NULL);
        lua_getfield(L, 2, "trainable");
        options.not_trainable = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
    }
    handle *h = handle_new(L, HANDLE_TENSOR);
    luaL_checkstack(L, 2 * ED_MAX_RANK + 16, NULL);
    binding b = binding_open(L);
    ed_tensor *initial = convert_operand(L, 1, ED_DTYPE_NONE);
    ed_tensor *v = initial ? ed_variable_with(initial, &options) : NULL;
    return binding_finish(L, &b, h, v);
}

static const luaL_Reg metamethods[] = {
    {"__newindex", new_index}, {"__len", length}, {"__tostring", to_string},
    {"__pairs", rows},         {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"totable", to_table},
    {"item", item},
    {"value", value},
    {"stop_gradient", stop_gradient},
    {"is_variable", is_variable},
    {"is_contiguous", is_contiguous},
    {"strides", strides},
    {"id", id},
    {"assign", assign},
    {"assign_add", assign_add},
    {"assign_sub", assign_sub},
    {"rows", rows},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"tensor", tensor},
    {"variable", variable_of},
    {"stop_gradient", stop_gradient},
    {NULL, NULL},
};

/* Operators are ops. */
static const struct {
    const char *event, *op;
} operators[] = {
    {"__add", "add"}, {"__sub", "sub"},        {"__mul", "mul"},       {"__div", "div"},
    {"__pow", "pow"}, {"__idiv", "floor_div"}, {"__mod", "floor_mod"},
};

static int negative(lua_State *L)
{
    lua_settop(L, 1);
    return ops_call(L, ed_op_find("neg"));
}

void tensor_open(lua_State *L, int module)
{
    luaL_setfuncs(L, functions, 0); /* into the module, at the top */
    (void)module;
    luaL_getmetatable(L, "eddy.tensor");
    luaL_setfuncs(L, metamethods, 0);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        ops_push(L, ed_op_find(operators[i].op));
        lua_setfield(L, -2, operators[i].event);
    }
    lua_pushcfunction(L, negative);
    lua_setfield(L, -2, "__unm");
    lua_getfield(L, -1, "__index"); /* the table of methods becomes an upvalue */
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, index_of, 1);
    lua_setfield(L, -3, "__index");
    lua_remove(L, -2); /* leaves the methods */
}
