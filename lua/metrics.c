#include "lua/maker.h"
#include "lua/objects.h"

/*
 * Metrics in Lua.
 *
 *     local loss, accuracy = ed.mean_metric("loss"), ed.sparse_categorical_accuracy()
 *     loss:update(value)    accuracy:compare(labels, predictions)    loss:result()    loss:reset()
 */

/* update(values) and compare(labels, predictions) return the metric. */
static int take(lua_State *L, bool compared)
{
    ed_metric *metric = handle_check(L, 1, HANDLE_METRIC);
    lua_settop(L, 3);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    ed_tensor *first = convert_operand(L, 2, ED_DTYPE_NONE);
    ed_tensor *second = first && compared ? convert_operand(L, 3, ED_DTYPE_NONE) : NULL;
    bool fine = first && (compared ? second && ed_metric_compare(metric, first, second)
                                   : ed_metric_update(metric, first));
    binding_close(&b);
    lua_settop(L, 1);
    return handle_return(L, fine);
}

static int update(lua_State *L)
{
    return take(L, false);
}

static int compare(lua_State *L)
{
    return take(L, true);
}

static int result(lua_State *L)
{
    lua_pushnumber(L, ed_metric_result(handle_check(L, 1, HANDLE_METRIC)));
    return 1;
}

static int reset(lua_State *L)
{
    ed_metric *metric = handle_check(L, 1, HANDLE_METRIC);
    lua_settop(L, 1);
    return handle_return(L, ed_metric_reset(metric));
}

static const luaL_Reg methods[] = {
    {"update", update}, {"compare", compare}, {"result", result}, {"reset", reset}, {NULL, NULL},
};

void metrics_open(lua_State *L)
{
    objects_methods(L, HANDLE_METRIC, methods, NULL, NULL);
}
