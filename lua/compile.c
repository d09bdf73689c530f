#include "lua/custom_layers.h"
#include "lua/maker.h"
#include "lua/training.h"
#include <string.h>
#include <strings.h>

/* layer:compile: objects, or their names in Keras. */

/* ---- Objects by their names ------------------------------------------------------------------ */

/* A new object of the kind, whose option `name` is that, if it has one. */
static void *named_object(const char *family, const char *symbol, const char *name)
{
    max_align_t options[MAKER_SIZE / sizeof(max_align_t)];
    const ed_kind *kind = ed_kind_find(family, symbol);
    if (!kind || !name || kind->required || kind->options_size > sizeof options)
        return kind ? ed_make(kind, NULL) : NULL;
    memcpy(options, kind->defaults, kind->options_size);
    for (const ed_field *f = kind->fields; f && f->name; f++)
        if (!strcmp(f->name, "name") && f->type == ED_FIELD_STRING)
            *(const char **)((char *)options + f->offset) = name;
    return ed_make(kind, options);
}

/* The kind that a short name of Keras's means; other names are kinds. */
static const char *long_name(const char *name)
{
    static const char *const names[][2] = {
        {"mse", "mean_squared_error"},
        {"mae", "mean_absolute_error"},
        {"mape", "mean_absolute_percentage_error"},
        {"msle", "mean_squared_logarithmic_error"},
        {"bce", "binary_crossentropy"},
        {"kld", "kl_divergence"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcasecmp(names[i][0], name)) return names[i][1];
    return name;
}

static void *wrong_value(lua_State *L, int at, const char *what, const char *expected)
{
    return ed_fail(ED_INVALID_ARGUMENT, "compile: %s is %s; %s is expected", what,
                   convert_kind(L, at).s, expected);
}

static bool is_word(lua_State *L, int at)
{
    return lua_type(L, at) == LUA_TSTRING && convert_is_plain(L, at);
}

static ed_loss *loss_at(lua_State *L, int at)
{
    ed_loss *loss = handle_at(L, at, HANDLE_LOSS);
    if (loss) return ed_scope_hold(loss);
    if (is_word(L, at)) return named_object("loss", long_name(lua_tostring(L, at)), NULL);
    return wrong_value(L, at, "loss",
                       lua_type(L, at) == LUA_TFUNCTION
                           ? "a loss or the name of one (ed.losses.custom makes one of a function)"
                           : "a loss, the name of one or a table of them");
}

static ed_metric *metric_at(lua_State *L, int at, const ed_loss *loss, const ed_layer *model)
{
    ed_metric *metric = handle_at(L, at, HANDLE_METRIC);
    if (metric) return ed_scope_hold(metric);
    if (!is_word(L, at)) return wrong_value(L, at, "a metric", "a metric or the name of one");
    return ed_metric_by_name(lua_tostring(L, at), loss, model);
}

/* ---- compile --------------------------------------------------------------------------------- */

static bool read_optimizer(lua_State *L, int at, const maker_field *field, void *to,
                           convert_room *room)
{
    (void)field, (void)room;
    void *optimizer = handle_at(L, at, HANDLE_OPTIMIZER);
    if (!optimizer && is_word(L, at))
        optimizer = named_object("optimizer", lua_tostring(L, at), NULL);
    else if (!optimizer)
        wrong_value(L, at, "optimizer", "an optimizer or the name of one");
    return (*(void **)to = ed_scope_hold(optimizer)) != NULL;
}

/* One loss, or a table of them, as the option losses. */
static bool read_losses(lua_State *L, int at, const maker_field *field, void *to,
                        convert_room *room)
{
    (void)field, (void)room;
    const bool table = lua_type(L, at) == LUA_TTABLE;
    const int64_t n = table ? (int64_t)lua_rawlen(L, at) : 1;
    if (table && convert_has_names(L, at))
        return ed_fail(ED_INVALID_ARGUMENT, "compile: a table of losses is a list, without names");
    void **losses = ed_scope_alloc((size_t)(n + 1) * sizeof *losses);
    for (int64_t i = 0; losses && i < n; i++) {
        if (table)
            lua_rawgeti(L, at, i + 1);
        else
            lua_pushvalue(L, at);
        losses[i] = loss_at(L, lua_gettop(L));
        lua_pop(L, 1);
        if (!losses[i]) return false;
    }
    *(ed_objects *)to = (ed_objects){losses, n};
    return losses;
}

/* Metrics come last: "accuracy" depends on the loss. */
static bool skip_metrics(lua_State *L, int at, const maker_field *field, void *to,
                         convert_room *room)
{
    (void)field, (void)to, (void)room;
    return lua_type(L, at) == LUA_TTABLE ||
           wrong_value(L, at, "metrics", "a table of metrics, {\"mae\"} for instance");
}

static const maker_field compile_fields[] = {
    {"optimizer", .offset = offsetof(ed_compile_options, optimizer), .read = read_optimizer},
    {"loss", .offset = offsetof(ed_compile_options, losses), .read = read_losses},
    {"loss_weights", ED_FIELD_FLOATS, offsetof(ed_compile_options, loss_weights)},
    {"metrics", .read = skip_metrics},
    {"weighted_metrics", .read = skip_metrics},
    {0},
};

/* The metrics of one output, from the table at `at`; values NULL with an error. */
static ed_objects metrics_of(lua_State *L, int at, const ed_loss *loss)
{
    const int64_t n = (int64_t)lua_rawlen(L, at);
    void **metrics = ed_scope_alloc((size_t)(n + 1) * sizeof *metrics);
    if (metrics && convert_has_names(L, at))
        metrics = ed_fail(ED_INVALID_ARGUMENT, "compile: a table of metrics has no names");
    for (int64_t i = 0; metrics && i < n; i++) {
        lua_rawgeti(L, at, i + 1);
        if (!(metrics[i] = metric_at(L, lua_gettop(L), loss))) metrics = NULL;
        lua_pop(L, 1);
    }
    return (ed_objects){metrics, n};
}

/* The metrics of each output, `count` of them at most, from the table of tables at `at`; NULL with
 * an error. */
static ed_objects *metrics_by_output(lua_State *L, int at, ed_objects losses)
{
    const int64_t n = (int64_t)lua_rawlen(L, at);
    ed_objects *all = ed_scope_alloc((size_t)(losses.count + 1) * sizeof *all);
    if (all && n > losses.count)
        return ed_fail(ED_INVALID_ARGUMENT, "compile: metrics of %lld outputs, and %lld losses",
                       (long long)n, (long long)losses.count);
    for (int64_t i = 0; all && i < losses.count; i++) all[i] = (ed_objects){0};
    for (int64_t i = 0; all && i < n; i++) {
        if (lua_rawgeti(L, at, i + 1) != LUA_TTABLE)
            all = wrong_value(L, -1, "metrics of an output", "a table");
        else if (!(all[i] = metrics_of(L, lua_gettop(L), losses.values[i])).values)
            all = NULL;
        lua_pop(L, 1);
    }
    return all;
}

static bool read_metrics(lua_State *L, int at, ed_objects losses, ed_objects **all)
{
    const bool nested = lua_rawgeti(L, at, 1) == LUA_TTABLE;
    lua_pop(L, 1);
    if (nested) return (*all = metrics_by_output(L, at, losses)) != NULL;
    if (!(*all = ed_scope_alloc((size_t)(losses.count + 1) * sizeof **all))) return false;
    for (int64_t i = 0; i < losses.count; i++) (*all)[i] = (ed_objects){0};
    (*all)[0] = metrics_of(L, at, losses.count ? losses.values[0] : NULL);
    return (*all)[0].values;
}

/* Adds the metrics of each output, if there are any. */
static bool add_metrics(ed_layer *layer, int64_t count, const ed_objects *metrics,
                        bool (*add)(ed_layer *layer, int64_t output, ed_metric *metric))
{
    for (int64_t i = 0; metrics && i < count; i++)
        for (int64_t k = 0; k < metrics[i].count; k++)
            if (!add(layer, i, metrics[i].values[k])) return false;
    return true;
}

/* Everything is read before the model is compiled. */
static bool compiled(lua_State *L, ed_layer *layer)
{
    ed_compile_options options = ED_NEW_OPTIONS(ED_COMPILE_OPTIONS, ed_compile_options);
    ed_objects *plain = NULL, *weighted = NULL;
    convert_room room = {.who = "compile"};
    if (!ed_scope_hold(layer) || !maker_options(L, 2, compile_fields, &options, &room))
        return false;
    const ed_objects losses = options.losses;
    if (lua_istable(L, 3) && !read_metrics(L, 3, losses, &plain)) return false;
    if (lua_istable(L, 4) && !read_metrics(L, 4, losses, &weighted)) return false;
    return ed_model_compile_with(layer, &options) &&
           add_metrics(layer, losses.count, plain, ed_model_add_metric) &&
           add_metrics(layer, losses.count, weighted, ed_model_add_weighted_metric);
}

/* compile{optimizer = , loss = , loss_weights = , metrics = , weighted_metrics = }: the layer. */
int layer_compile(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    luaL_checkstack(L, 32, NULL);
    training_push_option(L, 2, "metrics");
    training_push_option(L, 2, "weighted_metrics");
    binding b = binding_open(L);
    const bool fine = compiled(L, layer);
    binding_close(&b);
    lua_settop(L, 1);
    return handle_return(L, fine);
}
