#include "lua/maker.h"
#include "lua/objects.h"
#include <string.h>

/*
 * Metrics in Lua.
 *
 *     local loss, accuracy = ed.mean_metric("loss"), ed.sparse_categorical_accuracy()
 *     loss:update(value)    accuracy:compare(y_true, y_pred, {sample_weight = w})
 *     loss:result()    loss:reset()    loss:merge(other)
 */

/* The update's options from the table at `at`. */
static bool read_options(lua_State *L, int at, ed_metric_update_options *options)
{
    static const maker_field fields[] = {
        {"sample_weight", .offset = offsetof(ed_metric_update_options, sample_weight),
         .read = maker_operand},
        {"mask", .offset = offsetof(ed_metric_update_options, mask), .read = maker_operand},
        {0},
    };
    convert_room room = {.who = "metric"};
    return maker_options(L, at, fields, options, &room);
}

/* update(values, options) and compare(y_true, y_pred, options) return the metric. */
static int take(lua_State *L, bool compared)
{
    ed_metric *metric = handle_check(L, 1, HANDLE_METRIC);
    ed_metric_update_options options = {0};
    lua_settop(L, compared ? 4 : 3);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    ed_tensor *first = ed_scope_hold(metric) ? convert_operand(L, 2, ED_DTYPE_NONE) : NULL;
    ed_tensor *second = first && compared ? convert_operand(L, 3, ED_DTYPE_NONE) : NULL;
    const bool fine = first && (second || !compared) &&
                      read_options(L, compared ? 4 : 3, &options) &&
                      (compared ? ed_metric_compare_with(metric, first, second, &options)
                                : ed_metric_update_with(metric, first, &options));
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

/* A number, or a tensor if the result is no scalar. */
static int result(lua_State *L)
{
    ed_metric *metric = handle_check(L, 1, HANDLE_METRIC);
    lua_settop(L, 1);
    luaL_checkstack(L, 8, NULL);
    handle *made = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    ed_tensor *value = ed_metric_result_tensor(metric);
    if (!value || ed_rank(value)) return binding_finish(L, &b, made, value);
    const double number = ed_item(value);
    binding_close(&b);
    lua_pushnumber(L, number);
    return 1;
}

static int reset(lua_State *L)
{
    ed_metric *metric = handle_check(L, 1, HANDLE_METRIC);
    lua_settop(L, 1);
    return handle_return(L, ed_metric_reset(metric));
}

static int merge_metric(lua_State *L)
{
    ed_metric *metric = handle_check(L, 1, HANDLE_METRIC);
    const ed_metric *other = handle_check(L, 2, HANDLE_METRIC);
    lua_settop(L, 2);
    const bool fine = ed_metric_merge(metric, other);
    lua_settop(L, 1);
    return handle_return(L, fine);
}

static int push_variables(lua_State *L)
{
    const ed_metric *metric = handle_check(L, 1, HANDLE_METRIC);
    lua_settop(L, 1);
    luaL_checkstack(L, 8, NULL);
    handle *made = handle_new(L, HANDLE_LIST);
    binding b = binding_open(L);
    return objects_finish_list(L, &b, made, ed_metric_variables(metric));
}

static int field(lua_State *L)
{
    if (objects_method(L)) return 1;
    const ed_metric *metric = handle_check(L, 1, HANDLE_METRIC);
    if (lua_type(L, 2) != LUA_TSTRING || strcmp(lua_tostring(L, 2), "name") != 0)
        return objects_no_field(L);
    lua_pushstring(L, ed_metric_name(metric));
    return 1;
}

static const luaL_Reg methods[] = {
    {"update", update},      {"compare", compare},          {"result", result}, {"reset", reset},
    {"merge", merge_metric}, {"variables", push_variables}, {NULL, NULL},
};

void metrics_open(lua_State *L)
{
    objects_methods(L, HANDLE_METRIC, methods, NULL, field);
}
