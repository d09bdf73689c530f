#include "lua/maker.h"
#include "lua/objects.h"

/*
 * Objects that are functions of a tensor or of a step:
 *
 *     ed.schedules.exponential_decay(0.1, 1000, 0.96)(20)    schedule:at(20)
 *     ed.constraints.non_neg()(w)                            constraint:constrain(w)
 *     ed.regularizers.l2(0.01)(w)                            regularizer:regularize(w)
 */

static int at(lua_State *L)
{
    const ed_schedule *schedule = handle_check(L, 1, HANDLE_SCHEDULE);
    const int64_t step = maker_check_integer(L, 2);
    const double rate = ed_schedule_at(schedule, step);
    if (ed_failed()) return handle_raise(L);
    lua_pushnumber(L, rate);
    return 1;
}

/* f(object, tensor), object being the first argument. */
static int call_on_tensor(lua_State *L, handle_kind kind,
                          ed_tensor *(*f)(void *object, ed_tensor *x))
{
    void *object = handle_check(L, 1, kind);
    lua_settop(L, 2);
    luaL_checkstack(L, 2 * ED_MAX_RANK, NULL);
    handle *made = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    ed_tensor *x = convert_operand(L, 2, ED_DTYPE_NONE);
    return binding_finish(L, &b, made, x ? f(object, x) : NULL);
}

static ed_tensor *constrained(void *constraint, ed_tensor *w)
{
    return ed_constrain(constraint, w);
}

static ed_tensor *penalty(void *regularizer, ed_tensor *x)
{
    return ed_regularize(regularizer, x);
}

static int constrain(lua_State *L)
{
    return call_on_tensor(L, HANDLE_CONSTRAINT, constrained);
}

static int regularize(lua_State *L)
{
    return call_on_tensor(L, HANDLE_REGULARIZER, penalty);
}

void families_open(lua_State *L)
{
    static const struct {
        handle_kind kind;
        luaL_Reg methods[2], metamethods[2];
    } families[] = {
        {HANDLE_SCHEDULE, {{"at", at}}, {{"__call", at}}},
        {HANDLE_CONSTRAINT, {{"constrain", constrain}}, {{"__call", constrain}}},
        {HANDLE_REGULARIZER, {{"regularize", regularize}}, {{"__call", regularize}}},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        objects_methods(L, families[i].kind, families[i].methods, families[i].metamethods, NULL);
}
