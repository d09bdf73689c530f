#include "lua/ops.h"
#include "lua/arguments.h"
#include "lua/convert.h"
#include "lua/promotion.h"
#include "lua/objects.h"
#include <limits.h>
#include <string.h>

/*
 * Every op of the table as a Lua function, by one function: operands first, then attributes, by
 * place or by name in a last table.
 *
 *     ed.matmul(a, b, {transpose_b = true})    x:sum{axis = 1}    ed.zeros{2, 3, dtype = "int32"}
 *
 * An attribute given by its place goes to the first one that takes its kind: a table of numbers to
 * a list, a number to a number, a text to a dtype or text. Where no other could take them, numbers
 * in a row are a list: ed.zeros(2, 3). A new op needs nothing here.
 */

enum { MOST_ATTRS = 1024 };

typedef struct arguments {
    lua_State *L;
    const ed_op *op;
    int at, last; /* of the stack */
    ed_tensor **inputs;
    int n_inputs, most_inputs;
    unsigned given; /* attributes: bit i is the schema's i-th */
    convert_room room;
    max_align_t attrs[MOST_ATTRS / sizeof(max_align_t)];
} arguments;

/* ---- Operands -------------------------------------------------------------------------------- */

/* The dtype that a table of numbers meets as operand i: of the float tensors among the arguments
 * that it has to agree with, else of the other tensors. */
static ed_dtype dtype_for(const arguments *a, int i)
{
    ed_dtype met = ED_DTYPE_NONE;
    for (int k = 0; k < promotion_operands(a->op); k++) {
        const ed_tensor *t =
            promotion_agree(a->op, i, k) ? handle_at(a->L, k + 1, HANDLE_TENSOR) : NULL;
        if (t && (!met || ed_dtype_is_float(ed_dtype_of(t)))) met = ed_dtype_of(t);
    }
    return met;
}

static bool take_operand(arguments *a, int at, ed_dtype likely)
{
    int i = a->n_inputs;
    if (i == a->most_inputs)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: more than %d operands", a->op->name, i), false;
    const ed_operand *mine = promotion_operand(a->op, i);
    if (!convert_is_operand(a->L, at))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: %s is %s; a tensor, a number or a table of numbers is expected",
                       a->op->name, mine->name, convert_kind(a->L, at).s),
               false;
    const tables_wanted wanted = {
        .likely = likely, .whole = !(mine->dtypes & ED_SET_FLOAT), .who = a->op->name};
    ed_tensor *t = convert_values(a->L, at, &wanted);
    if (t) a->inputs[a->n_inputs++] = t;
    return t;
}

/* The dtype of the first tensor in a table, if it holds some. */
static ed_dtype dtype_within(lua_State *L, int table)
{
    int64_t count = (int64_t)lua_rawlen(L, table);
    ed_dtype dtype = ED_DTYPE_NONE;
    for (int64_t i = 1; i <= count && !dtype; i++) {
        lua_rawgeti(L, table, i);
        const ed_tensor *t = handle_at(L, -1, HANDLE_TENSOR);
        if (t) dtype = ed_dtype_of(t);
        lua_pop(L, 1);
    }
    return dtype;
}

/* Whether the next argument is a table of the operands: not if another tensor follows. */
static bool is_list(const arguments *a)
{
    lua_State *L = a->L;
    if (lua_type(L, a->at) != LUA_TTABLE || convert_has_names(L, a->at)) return false;
    const int next = a->at < a->last ? lua_type(L, a->at + 1) : LUA_TNIL;
    return next == LUA_TUSERDATA || next == LUA_TTABLE ? !convert_is_operand(L, a->at + 1) : true;
}

/* concat and stack, and polyval behind x: a table of tensors, or one after the other. */
static bool take_variadic(arguments *a)
{
    lua_State *L = a->L;
    if (is_list(a)) {
        int64_t count = (int64_t)lua_rawlen(L, a->at);
        ed_dtype likely = dtype_within(L, a->at);
        for (int64_t i = 1; i <= count; i++) {
            lua_rawgeti(L, a->at, i);
            bool fine = take_operand(a, lua_gettop(L), likely);
            lua_pop(L, 1);
            if (!fine) return false;
        }
        a->at++;
        return true;
    }
    while (a->at <= a->last && convert_is_operand(L, a->at))
        if (!take_operand(a, a->at++, ED_DTYPE_NONE)) return false;
    return true;
}

static bool take_operands(arguments *a)
{
    const bool variadic = a->op->flags & ED_OP_VARIADIC;
    int n = promotion_operands(a->op) - variadic;
    if (variadic && (n == 0 || is_list(a))) return take_variadic(a);
    for (int i = 0; i < n; i++, a->at++) {
        ed_tensor *t = a->at <= a->last ? handle_at(a->L, a->at, HANDLE_TENSOR) : NULL;
        if (t) { /* mostly, and at once */
            a->inputs[a->n_inputs++] = t;
            continue;
        }
        if (a->op->operands[i].optional && (a->at > a->last || !convert_is_operand(a->L, a->at)))
            break;
        if (a->at > a->last || convert_has_names(a->L, a->at))
            return ed_fail(ED_INVALID_ARGUMENT, "%s: operand %s is missing", a->op->name,
                           a->op->operands[i].name),
                   false;
        if (!take_operand(a, a->at, dtype_for(a, i))) return false;
    }
    return variadic ? take_variadic(a) : true;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

/* Whether an attribute of the type takes a value of Lua's type by its place. */
static bool suits(ed_field_type attribute, int type)
{
    switch (attribute) {
    case ED_FIELD_INTS:
    case ED_FIELD_AXES: return type == LUA_TTABLE || type == LUA_TNUMBER;
    case ED_FIELD_FLOATS: return type == LUA_TTABLE;
    case ED_FIELD_INT:
    case ED_FIELD_AXIS:
    case ED_FIELD_FLOAT: return type == LUA_TNUMBER;
    case ED_FIELD_DTYPE:
    case ED_FIELD_STRING: return type == LUA_TSTRING;
    case ED_FIELD_BOOL: return type == LUA_TBOOLEAN;
    default: return false;
    }
}

/* The first attribute from number `i` on that is not given and takes the type; -1 without one. */
static int next_attr(const arguments *a, int i, int type)
{
    const ed_field *schema = a->op->attrs;
    for (; schema && schema[i].name && i < 32; i++)
        if (!(a->given & 1u << i) && suits(schema[i].type, type)) return i;
    return -1;
}

/* How many numbers follow each other from argument `at` on. */
static int row_of_numbers(const arguments *a, int at)
{
    int n = 0;
    while (at + n <= a->last && lua_type(a->L, at + n) == LUA_TNUMBER) n++;
    return n;
}

/* An operand may be absent only with all after it. */
static void refuse_argument(const arguments *a)
{
    const ed_op *op = a->op;
    if (a->n_inputs < promotion_operands(op) && handle_at(a->L, a->at, HANDLE_TENSOR))
        ed_fail(ED_INVALID_ARGUMENT,
                "%s: argument %d, a tensor, follows operand %s, which is left out; zeros, or what "
                "else changes nothing, can stand there",
                op->name, a->at, op->operands[a->n_inputs].name);
    else
        ed_fail(ED_INVALID_ARGUMENT, "%s: there is nothing that argument %d, %s, could be",
                op->name, a->at, convert_kind(a->L, a->at).s);
}

static bool take_by_place(arguments *a)
{
    int type = lua_type(a->L, a->at), i = next_attr(a, 0, type);
    if (i < 0) return refuse_argument(a), false;
    const ed_field *field = &a->op->attrs[i];
    a->given |= 1u << i;
    if (!suits(field->type, LUA_TTABLE) || type != LUA_TNUMBER || next_attr(a, i + 1, type) >= 0)
        return convert_field(a->L, a->at, field, a->attrs, &a->room);
    int n = row_of_numbers(a, a->at);
    a->at += n - 1;
    return convert_row(a->L, a->at - n + 1, n, field, a->attrs, &a->room);
}

/* Whether the argument is {}, and axes are what it could be: x:sum{} means what x:sum() does, as
 * all calls without an option. A shape may be {}. */
static bool is_no_option(const arguments *a)
{
    if (lua_type(a->L, a->at) != LUA_TTABLE) return false;
    lua_pushnil(a->L);
    if (lua_next(a->L, a->at)) return lua_pop(a->L, 2), false;
    const int i = next_attr(a, 0, LUA_TTABLE);
    return i < 0 || a->op->attrs[i].type == ED_FIELD_AXES;
}

static bool take_attributes(arguments *a)
{
    for (; a->at <= a->last; a->at++) {
        if (lua_isnil(a->L, a->at) || is_no_option(a)) continue;
        int at = a->at;
        bool named = convert_has_names(a->L, at);
        bool listed = lua_type(a->L, at) == LUA_TTABLE && lua_rawlen(a->L, at) > 0;
        if ((!named || listed) && !take_by_place(a)) return false;
        if (named && !convert_options(a->L, at, a->op->attrs, a->attrs, &a->room)) return false;
    }
    return true;
}

static bool take_arguments(arguments *a)
{
    const ed_op *op = a->op;
    if (op->attrs_size > sizeof a->attrs)
        return ed_fail(ED_UNIMPLEMENTED, "%s: too many attributes", op->name), false;
    if (op->defaults)
        memcpy(a->attrs, op->defaults, op->attrs_size);
    else
        memset(a->attrs, 0, op->attrs_size);
    return take_operands(a) && take_attributes(a) &&
           promotion(op, a->inputs, a->n_inputs, a->attrs);
}

/* The one output, or a list of all. */
static void *execute(arguments *a, bool single)
{
    if (!take_arguments(a)) return NULL;
    const void *attrs = a->op->attrs ? a->attrs : NULL;
    return single ? (void *)ed_call_op(a->op, a->inputs, a->n_inputs, attrs)
                  : (void *)ed_execute_list(a->op, a->inputs, a->n_inputs, attrs);
}

/* As many operands as the call has may come: in memory of Lua's, which stays on its stack. */
static void make_room(lua_State *L, arguments *a, int last)
{
    size_t most = (size_t)last;
    for (int i = 1; i <= last; i++)
        if (lua_type(L, i) == LUA_TTABLE) most += lua_rawlen(L, i);
    if (most <= (size_t)a->most_inputs || most > INT_MAX / sizeof *a->inputs) return;
    a->inputs = lua_newuserdatauv(L, most * sizeof *a->inputs, 0);
    a->most_inputs = (int)most;
    lua_insert(L, last + 1); /* below the results */
}

/* The most arguments: operands, attributes and a table of options; a list of numbers may come
 * number by number. INT_MAX for an op of any number of operands. */
static int most_arguments(const ed_op *op)
{
    if (op->flags & ED_OP_VARIADIC) return INT_MAX;
    int most = promotion_operands(op);
    if (op->attrs) most++;
    for (const ed_field *a = op->attrs; a && a->name; a++)
        most += suits(a->type, LUA_TTABLE) ? ED_MAX_RANK : 1;
    return most;
}

/* A list's tensors as so many results, without those that are there for the gradient alone. */
static int push_each(lua_State *L, const ed_op *op, const ed_list *list)
{
    int n = (int)ed_list_size(list);
    while (n && op->results[n - 1].kept) n--;
    luaL_checkstack(L, n + 8, NULL);
    for (int i = 0; i < n; i++) handle_put(handle_new(L, HANDLE_TENSOR), ed_list_get(list, i));
    return n;
}

/* One output is one result, several are as many results, any number of them is a table. The
 * tensors' metatable is at a place of the stack or an upvalue. */
static int call(lua_State *L, const ed_op *op, int metatable)
{
    const bool many = op->flags & ED_OP_MANY_OUTPUTS,
               single = !many && (!op->results || !op->results[1].name);
    int last = lua_gettop(L);
    luaL_checkstack(L, 2 * ED_MAX_RANK + 16, NULL);
    handle *h = single ? handle_new_with(L, HANDLE_TENSOR, metatable) : handle_new(L, HANDLE_LIST);
    arguments a;
    ed_tensor *few[16];
    a.inputs = few;
    a.most_inputs = 16;
    if (op->flags & ED_OP_VARIADIC) make_room(L, &a, last);
    a.L = L;
    a.op = op;
    a.at = 1;
    a.last = last;
    a.n_inputs = 0;
    a.given = 0;
    a.room.used = 0;
    a.room.who = op->name;
    binding b = binding_open(L);
    void *made = execute(&a, single);
    if (many) return objects_finish_list(L, &b, h, made);
    const int n = binding_finish(L, &b, h, made);
    return single ? n : push_each(L, op, made);
}

/* Refuses what is more; options may come as {} where there are none: x:exp{}. */
static void check_count(lua_State *L, const ed_op *op, int given, int most)
{
    const bool options = given == most + 1 && !op->attrs && lua_type(L, given) == LUA_TTABLE;
    if (!options) arguments_refuse(L, op->name, given, most);
}

static int function(lua_State *L)
{
    const ed_op *op = lua_touserdata(L, lua_upvalueindex(1));
    const int given = lua_gettop(L), most = (int)lua_tointeger(L, lua_upvalueindex(3));
    if (__builtin_expect(given > most, 0)) check_count(L, op, given, most);
    return call(L, op, lua_upvalueindex(2));
}

/* a + b and a * b; of a sparse b its own, whose event is the fourth upvalue. */
static int operator_of_any(lua_State *L)
{
    if (__builtin_expect(!handle_at(L, 2, HANDLE_SPARSE), 1)) return function(L);
    luaL_getmetafield(L, 2, lua_tostring(L, lua_upvalueindex(4)));
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    return 1;
}

void ops_push_operator(lua_State *L, const ed_op *op, const char *event)
{
    lua_pushlightuserdata(L, (void *)op);
    handle_push_metatable(L, HANDLE_TENSOR);
    lua_pushinteger(L, most_arguments(op));
    lua_pushstring(L, event);
    lua_pushcclosure(L, operator_of_any, 4);
}

void ops_push(lua_State *L, const ed_op *op)
{
    lua_pushlightuserdata(L, (void *)op);
    handle_push_metatable(L, HANDLE_TENSOR);
    lua_pushinteger(L, most_arguments(op));
    lua_pushcclosure(L, function, 3);
}

int ops_call(lua_State *L, const ed_op *op)
{
    ops_push(L, op);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

const ed_op *ops_of(lua_State *L, int at)
{
    if (lua_tocfunction(L, at) != function) return NULL;
    lua_getupvalue(L, at, 1);
    const ed_op *op = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return op;
}

/* ---- The module's and the tensors' names ----------------------------------------------------- */

static bool has_state(const ed_op *op)
{
    for (const ed_field *a = op->attrs; a && a->name; a++)
        if (a->type == ED_FIELD_DRAW) return true;
    return false;
}

bool ops_is_public(const ed_op *op)
{
    return !(op->flags & ED_OP_INTERNAL) && !has_state(op) && !op->operands[0].writes;
}

const char *ops_name(const ed_op *op)
{
    return strcmp(op->name, "repeat") != 0 ? op->name : "repeat_";
}

const ed_op *ops_named(const char *name)
{
    const ed_op *op = ed_op_find(strcmp(name, "repeat_") != 0 ? name : "repeat");
    ed_clear_error();
    return op && !strcmp(ops_name(op), name) ? op : NULL;
}

static void set(lua_State *L, int table, const char *name)
{
    lua_pushvalue(L, -1);
    lua_setfield(L, table, name);
}

/* reduce_sum is also called sum, as NumPy has it. */
void ops_open(lua_State *L, int module, int methods)
{
    for (int i = 0; i < ed_op_count(); i++) {
        const ed_op *op = ed_op_at(i);
        if (!ops_is_public(op)) continue;
        ops_push(L, op);
        set(L, module, ops_name(op));
        if (promotion_operands(op)) set(L, methods, ops_name(op));
        if (!strncmp(op->name, "reduce_", 7)) {
            set(L, module, op->name + 7);
            set(L, methods, op->name + 7);
        }
        lua_pop(L, 1);
    }
}
