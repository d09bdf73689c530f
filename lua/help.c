#include "lua/objects.h"
#include "lua/arguments.h"
#include "lua/convert.h"
#include "lua/maker.h"
#include "lua/promotion.h"
#include "lua/ops.h"
#include "lua/wording.h"
#include <string.h>

/*
 * What the op table says of an op, as a Lua table. help.lua makes texts of it; nothing about an op
 * is written anywhere but in its definition.
 */

__asm__(".section .rodata\n"
        "eddy_help:\n"
        ".incbin \"lua/help.lua\"\n"
        "eddy_help_end:\n"
        "eddy_help_text:\n"
        ".incbin \"lua/help.txt\"\n"
        "eddy_help_text_end:\n"
        ".previous\n");
extern const char eddy_help[] __attribute__((visibility("hidden")));
extern const char eddy_help_end[] __attribute__((visibility("hidden")));
extern const char eddy_help_text[] __attribute__((visibility("hidden")));
extern const char eddy_help_text_end[] __attribute__((visibility("hidden")));

static const char *const kinds_of_attrs[] = {
    [ED_FIELD_BOOL] = "true or false",
    [ED_FIELD_INT] = "an integer",
    [ED_FIELD_FLOAT] = "a number",
    [ED_FIELD_DTYPE] = "a dtype",
    [ED_FIELD_INTS] = "integers",
    [ED_FIELD_FLOATS] = "numbers",
    [ED_FIELD_STRING] = "a string",
    [ED_FIELD_AXIS] = "an integer",
    [ED_FIELD_AXES] = "integers",
    [ED_FIELD_CHOICE] = "a word",
    [ED_FIELD_ACTIVATION] = "an activation",
    [ED_FIELD_GENERATOR] = "a generator",
    [ED_FIELD_INITIALIZER] = "an initializer",
    [ED_FIELD_REGULARIZER] = "a regularizer",
    [ED_FIELD_CONSTRAINT] = "a constraint",
    [ED_FIELD_SCHEDULE] = "a schedule",
    [ED_FIELD_LOSS] = "a loss",
    [ED_FIELD_OPTIMIZER] = "an optimizer",
    [ED_FIELD_LAYER] = "a layer",
    [ED_FIELD_LAYERS] = "layers",
};

static bool is_told(const ed_field *a)
{
    return a->type != ED_FIELD_DRAW && a->type != ED_FIELD_OBJECT;
}

/* A number of this type, as Lua counts: indices and axes begin at 1. */
static void push_int(lua_State *L, int64_t n, ed_field_type type)
{
    lua_pushinteger(L, convert_counts(type) && n >= 0 ? n + 1 : n);
}

static void push_ints(lua_State *L, ed_ints ints, ed_field_type type)
{
    lua_createtable(L, (int)ints.count, 0);
    for (int64_t i = 0; i < ints.count; i++) {
        push_int(L, ints.values[i], type);
        lua_rawseti(L, -2, i + 1);
    }
}

static void push_floats(lua_State *L, ed_floats floats)
{
    lua_createtable(L, (int)floats.count, 0);
    for (int64_t i = 0; i < floats.count; i++) {
        lua_pushnumber(L, floats.values[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

void help_push_attr(lua_State *L, const ed_field *a, const void *structure)
{
    const void *at = (const char *)structure + a->offset;
    switch (a->type) {
    case ED_FIELD_BOOL: lua_pushboolean(L, *(const bool *)at); return;
    case ED_FIELD_INT:
    case ED_FIELD_AXIS: push_int(L, *(const int64_t *)at, a->type); return;
    case ED_FIELD_FLOAT: lua_pushnumber(L, *(const double *)at); return;
    case ED_FIELD_DTYPE:
        if (*(const ed_dtype *)at)
            lua_pushstring(L, ed_dtype_name(*(const ed_dtype *)at));
        else
            lua_pushnil(L);
        return;
    case ED_FIELD_INTS:
    case ED_FIELD_AXES:
        if (((const ed_ints *)at)->values)
            push_ints(L, *(const ed_ints *)at, a->type);
        else
            lua_pushnil(L);
        return;
    case ED_FIELD_FLOATS:
        if (((const ed_floats *)at)->values)
            push_floats(L, *(const ed_floats *)at);
        else
            lua_pushnil(L);
        return;
    case ED_FIELD_STRING:
    case ED_FIELD_CHOICE:
    case ED_FIELD_ACTIVATION: lua_pushstring(L, *(const char *const *)at); return;
    default: lua_pushnil(L);
    }
}

static void set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void push_operands(lua_State *L, const ed_op *op)
{
    lua_newtable(L);
    for (int i = 0; i < promotion_operands(op); i++) {
        lua_newtable(L);
        set_text(L, "name", op->operands[i].name);
        lua_newtable(L);
        for (int d = ED_DTYPE_NONE + 1, n = 0; d < ED_DTYPE_COUNT; d++) {
            if (!(op->operands[i].dtypes & 1u << d)) continue;
            lua_pushstring(L, ed_dtype_name((ed_dtype)d));
            lua_rawseti(L, -2, ++n);
        }
        lua_setfield(L, -2, "dtypes");
        lua_pushlstring(L, &op->operands[i].type, op->operands[i].type != 0);
        lua_setfield(L, -2, "type");
        lua_rawseti(L, -2, i + 1);
    }
}

/* "VALID" or "SAME" for a choice. */
static void push_kind_of_value(lua_State *L, const ed_field *a)
{
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    if (a->type != ED_FIELD_CHOICE) luaL_addstring(&text, kinds_of_attrs[a->type]);
    for (int i = 0; a->type == ED_FIELD_CHOICE && a->limits.words[i]; i++) {
        luaL_addstring(&text, !i ? "" : a->limits.words[i + 1] ? ", " : " or ");
        luaL_addchar(&text, '"');
        luaL_addstring(&text, a->limits.words[i]);
        luaL_addchar(&text, '"');
    }
    luaL_pushresult(&text);
}

/* A line of documentation, with Lua's names. */
static void push_words(lua_State *L, const char *key, const char *value)
{
    if (strstr(value, "ed_"))
        wording_push(L, value);
    else
        lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

/* Whether the default of a number is none that is allowed: it must be given. */
static bool is_beyond(const ed_field *a, const void *defaults)
{
    const ed_limits *l = &a->limits;
    if (!defaults || !l->bounded || (a->type != ED_FIELD_INT && a->type != ED_FIELD_FLOAT))
        return false;
    const void *at = ED_FIELD_AT(a, defaults);
    const double x = a->type == ED_FIELD_INT ? (double)*(const int64_t *)at : *(const double *)at;
    return !(l->above_low ? x > l->low : x >= l->low) ||
           !(l->below_high ? x < l->high : x <= l->high);
}

/* Whether the default of a number stands for none, which the line of documentation tells. */
static bool is_not_given(const ed_field *a, const void *defaults)
{
    return a->type == ED_FIELD_FLOAT && *(const double *)ED_FIELD_AT(a, defaults) == ED_NOT_GIVEN;
}

/* The first `needed` fields are required. */
static void push_fields(lua_State *L, const ed_field *fields, const void *defaults, int needed)
{
    lua_newtable(L);
    int n = 0;
    for (const ed_field *a = fields; a && a->name; a++) {
        if (!is_told(a)) continue;
        lua_newtable(L);
        set_text(L, "name", a->name);
        push_kind_of_value(L, a);
        lua_setfield(L, -2, "kind");
        push_words(L, "doc", a->doc);
        lua_pushboolean(L, n < needed || a->limits.required || is_beyond(a, defaults));
        lua_setfield(L, -2, "required");
        if (a->limits.otherwise)
            set_text(L, "default", a->limits.otherwise);
        else if (defaults && !is_not_given(a, defaults)) {
            help_push_attr(L, a, defaults);
            lua_setfield(L, -2, "default");
        }
        lua_rawseti(L, -2, ++n);
    }
}

/* made(): the kinds of objects, as tables of family, name, doc and options. */
static int made_words(lua_State *L)
{
    lua_newtable(L);
    for (int i = 0; i < ed_kind_count(); i++) {
        const ed_kind *kind = ed_kind_at(i);
        lua_newtable(L);
        set_text(L, "family", kind->family);
        set_text(L, "name", kind->name);
        push_words(L, "doc", kind->doc);
        set_text(L, "short", kind->short_name);
        push_fields(L, kind->fields, kind->defaults, kind->required);
        lua_setfield(L, -2, "options");
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static void push_sample_input(lua_State *L, const ed_sample_input *in)
{
    lua_newtable(L);
    push_ints(L, (ed_ints){in->shape, in->rank}, ED_FIELD_INTS);
    lua_setfield(L, -2, "shape");
    lua_pushnumber(L, in->low);
    lua_setfield(L, -2, "low");
    lua_pushnumber(L, in->high);
    lua_setfield(L, -2, "high");
    lua_pushboolean(L, in->diagonal > 0);
    lua_setfield(L, -2, "regular");
}

/* One sample: the shapes and ranges of its inputs, and its attributes. */
static void push_sample(lua_State *L, const ed_op *op, const ed_sample *s)
{
    lua_newtable(L);
    lua_newtable(L);
    for (int i = 0; i < ED_MAX_OPERANDS && s->inputs[i].given; i++) {
        push_sample_input(L, &s->inputs[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "inputs");
    lua_newtable(L);
    for (const ed_field *a = op->attrs; s->attrs && a && a->name; a++) {
        help_push_attr(L, a, s->attrs);
        lua_setfield(L, -2, a->name);
    }
    lua_setfield(L, -2, "attrs");
}

/* op(name): a table, or nil for what is none of the public ops. */
static int op_words(lua_State *L)
{
    const ed_op *op = ops_named(luaL_checkstring(L, 1));
    if (!op || !ops_is_public(op)) return 0;
    lua_newtable(L);
    set_text(L, "name", ops_name(op));
    push_words(L, "doc", op->doc);
    set_text(L, "no_gradient", op->no_gradient);
    lua_pushboolean(L, op->flags & ED_OP_VARIADIC);
    lua_setfield(L, -2, "variadic");
    push_operands(L, op);
    lua_setfield(L, -2, "operands");
    push_fields(L, op->attrs, op->defaults, 0);
    lua_setfield(L, -2, "attrs");
    lua_newtable(L);
    int n = 0;
    for (const ed_sample *s = op->samples; s && !s->last; s++) {
        push_sample(L, op, s);
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "samples");
    return 1;
}

/* ops(): the names of the public ones, in order. */
static int op_names(lua_State *L)
{
    int n = 0;
    lua_newtable(L);
    for (int i = 0; i < ed_op_count(); i++) {
        if (!ops_is_public(ed_op_at(i))) continue;
        lua_pushstring(L, ops_name(ed_op_at(i)));
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/* kind(x): "tensor" and so on for an object of Eddy's, else nil. */
static int kind(lua_State *L)
{
    for (int k = 0; k < HANDLE_KINDS; k++) {
        if (!handle_at(L, 1, (handle_kind)k)) continue;
        lua_pushstring(L, handle_kind_name((handle_kind)k));
        return 1;
    }
    return 0;
}

void help_push_methods(lua_State *L, const char *kind_name)
{
    luaL_getmetatable(L, lua_pushfstring(L, "eddy.%s", kind_name));
    lua_getfield(L, -1, "__index");
    if (lua_isfunction(L, -1) && !lua_getupvalue(L, -1, 1)) lua_pushnil(L);
}

/* methods(kind): its methods by name, in a table that may be changed. */
static int methods(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    lua_newtable(L);
    help_push_methods(L, name);
    int from = lua_gettop(L);
    if (!lua_istable(L, from)) return lua_settop(L, 2), 1;
    lua_pushnil(L);
    while (lua_next(L, from)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, 2);
    }
    lua_settop(L, 2);
    return 1;
}

/* kinds(): the names of all kinds of objects. */
static int kinds(lua_State *L)
{
    lua_newtable(L);
    for (int k = 0; k < HANDLE_KINDS; k++) {
        lua_pushstring(L, handle_kind_name((handle_kind)k));
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

static void push_names(lua_State *L, const maker_field *fields, int from, int to)
{
    lua_newtable(L);
    for (int i = from; i < to; i++) {
        lua_pushstring(L, fields[i].name);
        lua_rawseti(L, -2, i - from + 1);
    }
}

/* arguments(f): the names of its places and options, where a table in C says them, else nil. */
static int arguments(lua_State *L)
{
    const maker *m = maker_of(L, 1);
    if (!m) return 0;
    int count = 0;
    while (m->fields[count].name) count++;
    lua_newtable(L);
    push_names(L, m->fields, 0, m->places);
    lua_setfield(L, -2, "places");
    push_names(L, m->fields, m->places, count);
    lua_setfield(L, -2, "options");
    return 1;
}

static const luaL_Reg functions[] = {
    {"op", op_words},     {"ops", op_names},
    {"kind", kind},       {"methods", methods},
    {"kinds", kinds},     {"arguments", arguments},
    {"made", made_words}, {"no_more", arguments_no_more},
    {NULL, NULL},
};

/* ---- For what completes names ---------------------------------------------------------------- */

static const char options_key;

void help_push_options(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &options_key);
}

/* Most are named as an op is; a name that is none costs no more than an error that is forgotten. */
void help_push_activations(lua_State *L)
{
    static const char *const others[] = {"exponential", "hard_swish", "linear", "swish"};
    const int ops = ed_op_count(), count = ops + (int)(sizeof others / sizeof *others);
    lua_newtable(L);
    for (int i = 0; i < count; i++) {
        const char *name = i < ops ? ed_op_at(i)->name : others[i - ops];
        ed_scope scope = ed_scope_open();
        const bool is_one = ed_activate(ed_zeros(ED_SHAPE(2)), name);
        ed_scope_close(&scope);
        if (!is_one) continue;
        lua_pushstring(L, name);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
    ed_clear_error();
}

/* ---------------------------------------------------------------------------------------------- */

void help_signatures(lua_State *L)
{
    arguments_open(L, eddy_help_text, eddy_help_text_end);
}

void help_open(lua_State *L, int module, const char *prelude, size_t size)
{
    size_t length = (size_t)(eddy_help_end - eddy_help);
    if (luaL_loadbufferx(L, eddy_help, length, "=eddy", "t") != LUA_OK) lua_error(L);
    lua_pushvalue(L, module);
    luaL_newlib(L, functions);
    lua_pushlstring(L, prelude, size);
    lua_pushlstring(L, eddy_help_text, (size_t)(eddy_help_text_end - eddy_help_text));
    lua_call(L, 4, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &options_key);
}
