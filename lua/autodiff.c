#include "lua/arguments.h"
#include "lua/call.h"
#include "lua/maker.h"
#include "lua/nested.h"
#include "lua/objects.h"

/* Tapes and forward accumulators. prelude.lua makes value_and_grad, grad, jacobian and hessian of
 * these. */

/* ---- Tapes ----------------------------------------------------------------------------------- */

static const maker_field tape_fields[] = {
    {"persistent", ED_FIELD_BOOL, .offset = offsetof(ed_tape_options, persistent)},
    {"ignore_accessed_variables", ED_FIELD_BOOL,
     .offset = offsetof(ed_tape_options, ignore_accessed_variables)},
    {0},
};

static void *make_tape(const void *options)
{
    return ed_tape_begin_with(options);
}

static const maker tape_maker[] = {
    {"tape_begin", HANDLE_TAPE, 0, 0, tape_fields, sizeof(ed_tape_options), NULL, make_tape}, {0}};

static int command(lua_State *L, bool (*what)(ed_tape *tape))
{
    ed_tape *tape = handle_check(L, 1, HANDLE_TAPE);
    lua_settop(L, 1);
    return handle_return(L, what(tape));
}

static int stop(lua_State *L)
{
    return command(L, ed_tape_stop);
}

/* Stops the tape in a table, if it still records. */
static int stop_tape(lua_State *L)
{
    lua_rawgeti(L, 1, 1);
    ed_tape *tape = handle_at(L, -1, HANDLE_TAPE);
    const bool failed = ed_failed();
    if (tape && !ed_tape_stop(tape) && !failed) ed_clear_error();
    return 0;
}

static int resume(lua_State *L)
{
    return command(L, ed_tape_resume);
}

static int reset(lua_State *L)
{
    return command(L, ed_tape_reset);
}

static int watch(lua_State *L)
{
    ed_tape *tape = handle_check(L, 1, HANDLE_TAPE);
    ed_tensor *x = handle_check(L, 2, HANDLE_TENSOR);
    lua_settop(L, 2);
    return handle_return(L, ed_watch(tape, x));
}

static int watched(lua_State *L)
{
    ed_tape *tape = handle_check(L, 1, HANDLE_TAPE);
    handle *holder = handle_new(L, HANDLE_LIST);
    binding b = binding_open(L);
    return objects_finish_list(L, &b, holder, ed_tape_watched_variables(tape));
}

/* A tensor, or a table of them. */
static ed_list *targets(lua_State *L, int at)
{
    ed_tensor *t = handle_at(L, at, HANDLE_TENSOR);
    return t ? ed_list_of_one(t) : convert_list(L, at);
}

static bool read_targets(lua_State *L, int at, const maker_field *field, void *to,
                         convert_room *room)
{
    (void)field, (void)room;
    ed_tensor *number =
        lua_type(L, at) == LUA_TNUMBER ? convert_operand(L, at, ED_DTYPE_NONE) : NULL;
    return (*(ed_list **)to = number ? ed_list_of_one(number) : targets(L, at)) != NULL;
}

static ed_list *ask_gradient(lua_State *L, ed_tape *tape)
{
    static const maker_field fields[] = {
        {"unconnected_zeros", ED_FIELD_BOOL,
         .offset = offsetof(ed_gradient_options, unconnected_zeros)},
        {"output_gradients", .read = read_targets,
         .offset = offsetof(ed_gradient_options, output_gradients)},
        {0},
    };
    ed_gradient_options options = {0};
    convert_room room = {.who = "gradient"};
    if (!ed_scope_hold(tape) || !maker_options(L, 4, fields, &options, &room)) return NULL;
    ed_list *to = targets(L, 2), *from = to ? targets(L, 3) : NULL;
    return from ? ed_gradient_list(tape, to, from, &options) : NULL;
}

/* Flattens the output gradients among the options at an index, in a copy of these. */
static void flatten_seeds(lua_State *L, int at)
{
    static const char name[] = "output_gradients";
    if (lua_type(L, at) != LUA_TTABLE) return;
    lua_pushstring(L, name);
    lua_rawget(L, at);
    const int seeds = lua_gettop(L);
    if (nested_is(L, seeds)) {
        nested_push(L, seeds, "gradient: output_gradients");
        lua_newtable(L);
        for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            lua_rawset(L, -5);
        }
        lua_pushvalue(L, seeds + 1);
        lua_setfield(L, -2, name);
        lua_replace(L, at);
    }
    lua_settop(L, seeds - 1);
}

/* As objects_finish_list: of a single one the result or nil, of nested ones a table of that
 * shape. */
static int finish_nested(lua_State *L, binding *b, handle *holder, ed_list *results, bool single,
                         int shape)
{
    objects_finish_list(L, b, holder, results);
    if (single) lua_rawgeti(L, -1, 1);
    if (single && lua_isboolean(L, -1)) lua_pushnil(L);
    if (lua_isnil(L, shape)) return 1;
    nested_fill(L, shape, -1);
    lua_pushvalue(L, shape);
    return 1;
}

/* What is asked of a tape by tape, target and sources at 1 to 3 and options at 4. */
typedef ed_list *asker(lua_State *L, ed_tape *tape);

/* nil or false for sources that no target depends on; of nested sources a table of their shape. */
static int ask_tape(lua_State *L, asker *ask)
{
    ed_tape *tape = handle_check(L, 1, HANDLE_TAPE);
    bool single = handle_at(L, 3, HANDLE_TENSOR);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    const int shape = lua_gettop(L);
    handle *holder = handle_new(L, HANDLE_LIST);
    int top = lua_gettop(L);
    binding b = binding_open(L);
    ed_list *results = ask(L, tape);
    lua_settop(L, top);
    return finish_nested(L, &b, holder, results, single, shape);
}

/* tape:gradient(target, sources, {unconnected_zeros, output_gradients}) */
static int gradient(lua_State *L)
{
    luaL_checkany(L, 3);
    lua_settop(L, 4);
    nested_take(L, 2, "gradient: target");
    flatten_seeds(L, 4);
    nested_take(L, 3, "gradient: sources");
    return ask_tape(L, ask_gradient);
}

static ed_list *ask_jacobian(lua_State *L, ed_tape *tape)
{
    static const maker_field fields[] = {
        {"unconnected_zeros", ED_FIELD_BOOL,
         .offset = offsetof(ed_jacobian_options, unconnected_zeros)},
        {0},
    };
    ed_jacobian_options options = {0};
    convert_room room = {.who = "jacobian"};
    if (!ed_scope_hold(tape) || !maker_options(L, 4, fields, &options, &room)) return NULL;
    ed_tensor *target = ed_scope_hold(handle_at(L, 2, HANDLE_TENSOR));
    ed_list *from = target ? targets(L, 3) : NULL;
    return from ? ed_jacobian_list(tape, target, from, &options) : NULL;
}

static ed_list *ask_batch_jacobian(lua_State *L, ed_tape *tape)
{
    if (!ed_scope_hold(tape)) return NULL;
    ed_tensor *target = ed_scope_hold(handle_at(L, 2, HANDLE_TENSOR));
    ed_list *from = target ? targets(L, 3) : NULL;
    return from ? ed_batch_jacobian_list(tape, target, from) : NULL;
}

static int jacobian_by(lua_State *L, asker *ask, const char *who)
{
    handle_check(L, 1, HANDLE_TAPE);
    handle_check(L, 2, HANDLE_TENSOR);
    if (lua_type(L, 3) != LUA_TTABLE) handle_check(L, 3, HANDLE_TENSOR);
    lua_settop(L, 4);
    nested_take(L, 3, who);
    return ask_tape(L, ask);
}

/* tape:jacobian(target, sources, {unconnected_zeros}) */
static int jacobian(lua_State *L)
{
    return jacobian_by(L, ask_jacobian, "jacobian: sources");
}

static int batch_jacobian(lua_State *L)
{
    return jacobian_by(L, ask_batch_jacobian, "batch_jacobian: sources");
}

/* ---- Accumulators ---------------------------------------------------------------------------- */

/* A tangent for each primal: numbers, and tables of them, become tensors of its dtype. */
static ed_list *read_tangents(lua_State *L, int at, const ed_list *primals)
{
    const bool one = handle_at(L, 1, HANDLE_TENSOR);
    const int64_t n = one ? 1 : lua_istable(L, at) ? (int64_t)lua_rawlen(L, at) : -1;
    if (n != ed_list_size(primals))
        return ed_fail(
            ED_INVALID_ARGUMENT,
            "forward_accumulator: a table of %lld tangents is expected, like the primals",
            (long long)ed_list_size(primals));
    ed_tensor **tangents = ed_scope_alloc(((size_t)n + 1) * sizeof *tangents);
    for (int64_t i = 0; tangents && i < n; i++) {
        if (one)
            lua_pushvalue(L, at);
        else
            lua_rawgeti(L, at, i + 1);
        tangents[i] =
            ed_scope_hold(convert_operand(L, lua_gettop(L), ed_dtype_of(ed_list_get(primals, i))));
        lua_pop(L, 1);
        if (!tangents[i]) return NULL;
    }
    return tangents ? ed_list_make(tangents, n) : NULL;
}

/* forward_accumulator(primals, tangents): one tensor, or tables of the same form. */
static int forward_accumulator(lua_State *L)
{
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    nested_take(L, 1, "forward_accumulator: primals");
    if (!lua_isnil(L, 3)) {
        nested_follow(L, 3, 2, "forward_accumulator: tangents");
        lua_replace(L, 2);
    }
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    handle *h = handle_new(L, HANDLE_ACCUMULATOR);
    binding b = binding_open(L);
    ed_list *primals = targets(L, 1);
    ed_list *tangents = primals ? read_tangents(L, 2, primals) : NULL;
    return binding_finish(L, &b, h,
                          tangents ? ed_forward_accumulator_begin(primals, tangents) : NULL);
}

static int accumulator_stop(lua_State *L)
{
    ed_forward_accumulator *acc = handle_check(L, 1, HANDLE_ACCUMULATOR);
    lua_settop(L, 1);
    return handle_return(L, ed_forward_accumulator_stop(acc));
}

static ed_list *ask_jvp(lua_State *L, ed_forward_accumulator *acc)
{
    static const maker_field fields[] = {
        {"unconnected_zeros", ED_FIELD_BOOL, .offset = offsetof(ed_jvp_options, unconnected_zeros)},
        {0},
    };
    ed_jvp_options options = {0};
    convert_room room = {.who = "jvp"};
    if (!ed_scope_hold(acc) || !maker_options(L, 3, fields, &options, &room)) return NULL;
    ed_list *of = targets(L, 2);
    return of ? ed_forward_jvp_list(acc, of, &options) : NULL;
}

/* accumulator:jvp(targets, {unconnected_zeros}) */
static int jvp(lua_State *L)
{
    ed_forward_accumulator *acc = handle_check(L, 1, HANDLE_ACCUMULATOR);
    luaL_checkany(L, 2);
    lua_settop(L, 3);
    nested_take(L, 2, "jvp: targets");
    const int shape = lua_gettop(L);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    handle *holder = handle_new(L, HANDLE_LIST);
    const int top = lua_gettop(L);
    binding b = binding_open(L);
    ed_list *results = ask_jvp(L, acc);
    lua_settop(L, top);
    return finish_nested(L, &b, holder, results, handle_at(L, 2, HANDLE_TENSOR), shape);
}

static const luaL_Reg methods[] = {
    {"stop", stop},         {"resume", resume},
    {"reset", reset},       {"watch", watch},
    {"watched", watched},   {"gradient", gradient},
    {"jacobian", jacobian}, {"batch_jacobian", batch_jacobian},
    {NULL, NULL},
};

static const luaL_Reg accumulator_methods[] = {
    {"stop", accumulator_stop},
    {"jvp", jvp},
    {NULL, NULL},
};

void autodiff_natives(lua_State *L)
{
    lua_pushcfunction(L, stop_tape);
    lua_setfield(L, -2, "stop_tape");
}

void autodiff_open(lua_State *L)
{
    maker_open(L, tape_maker);
    luaL_getmetatable(L, "eddy.tape");
    lua_getfield(L, -1, "__index");
    arguments_set(L, "tape", methods);
    lua_pop(L, 2);
    luaL_getmetatable(L, "eddy.forward_accumulator");
    lua_getfield(L, -1, "__index");
    arguments_set(L, "forward_accumulator", accumulator_methods);
    lua_pop(L, 2);
    arguments_push(L, "forward_accumulator", forward_accumulator);
    lua_setfield(L, -2, "forward_accumulator");
}
