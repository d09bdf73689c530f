#include "lua/call.h"
#include "lua/custom_layers.h"
#include "lua/maker.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * Training as in Keras: methods of all layers.
 *
 *     model:compile{optimizer = "adam", loss = "mse", metrics = {"mae", ed.metrics.mean()}}
 *     local history = model:fit(x, y, {epochs = 3, callbacks = {function(t) ... end}})
 *     history.loss[3]    model:evaluate(x, y).loss    model:predict(x)
 */

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

/* The accuracy that belongs to a loss, or the plain one. */
static const char *accuracy_of(const ed_loss *loss)
{
    static const char *const kinds[] = {"sparse_categorical_accuracy", "categorical_accuracy",
                                        "binary_accuracy"};
    const ed_kind *kind = ed_kind_of(loss);
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(kind->name, kinds[i], strlen(kinds[i]) - strlen("accuracy"))) return kinds[i];
    return "accuracy";
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

static ed_metric *metric_at(lua_State *L, int at, const ed_loss *loss)
{
    ed_metric *metric = handle_at(L, at, HANDLE_METRIC);
    if (metric) return ed_scope_hold(metric);
    if (!is_word(L, at)) return wrong_value(L, at, "a metric", "a metric or the name of one");
    const char *name = lua_tostring(L, at);
    const bool accuracy = !strcmp(name, "accuracy") || !strcmp(name, "acc");
    return named_object("metric", accuracy ? accuracy_of(loss) : long_name(name), name);
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
    return lua_type(L, at) == LUA_TTABLE || wrong_value(L, at, "metrics", "a table of metrics");
}

static const maker_field compile_fields[] = {
    {"optimizer", .offset = offsetof(ed_compile_options, optimizer), .read = read_optimizer},
    {"loss", .offset = offsetof(ed_compile_options, losses), .read = read_losses},
    {"loss_weights", ED_FIELD_FLOATS, offsetof(ed_compile_options, loss_weights)},
    {"metrics", .read = skip_metrics},
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

static bool compiled(lua_State *L, ed_layer *layer, int metrics_at)
{
    ed_compile_options options = ED_NEW_OPTIONS(ED_COMPILE_OPTIONS, ed_compile_options);
    ed_objects *metrics = NULL;
    convert_room room = {.who = "compile"};
    if (!ed_scope_hold(layer) || !maker_options(L, 2, compile_fields, &options, &room))
        return false;
    const ed_objects losses = options.losses;
    if (lua_istable(L, metrics_at) && !read_metrics(L, metrics_at, losses, &metrics)) return false;
    if (metrics) options.metrics = metrics[0];
    bool fine = ed_model_compile_with(layer, &options);
    for (int64_t i = 1; fine && metrics && i < losses.count; i++)
        for (int64_t k = 0; fine && k < metrics[i].count; k++)
            fine = ed_model_add_metric(layer, i, metrics[i].values[k]);
    return fine;
}

/* Pushes the value of that name in the table at an index of the stack, or nil. May raise. */
static void push_option(lua_State *L, int at, const char *name)
{
    lua_pushstring(L, name);
    if (lua_type(L, at) == LUA_TTABLE)
        lua_rawget(L, at);
    else
        lua_pop(L, 1), lua_pushnil(L);
}

/* compile{optimizer = , loss = , loss_weights = , metrics = }: the layer. */
int layer_compile(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    luaL_checkstack(L, 32, NULL);
    push_option(L, 2, "metrics");
    binding b = binding_open(L);
    const bool fine = compiled(L, layer, 3);
    binding_close(&b);
    lua_settop(L, 1);
    return handle_return(L, fine);
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

/* The functions among a call's callbacks: what holds the table of them; whether one of them
 * returned false. */
typedef struct functions {
    call_hold *hold;
    bool stop;
} functions;

/* One of them: its place in the table. */
typedef struct function {
    functions *all;
    lua_Integer place;
} function;

typedef struct function_call {
    const function *function;
    const ed_training *training;
} function_call;

static void set_integer(lua_State *L, const char *name, int64_t value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

/* Pushes what a function gets. */
static void push_training(lua_State *L, const ed_training *t)
{
    static const char *const events[] = {
        "train_begin", "train_end",  "epoch_begin", "epoch_end",        "batch_begin",
        "batch_end",   "test_begin", "test_end",    "test_batch_begin", "test_batch_end"};
    lua_createtable(L, 0, 8);
    lua_pushstring(L, events[t->event]);
    lua_setfield(L, -2, "event");
    identity_push(L, t->model);
    lua_setfield(L, -2, "model");
    set_integer(L, "epoch", t->epoch + 1);
    set_integer(L, "epochs", t->epochs);
    set_integer(L, "step", t->step + 1);
    set_integer(L, "steps", t->steps);
    lua_pushboolean(L, t->failed);
    lua_setfield(L, -2, "failed");
    lua_createtable(L, 0, (int)t->count);
    for (int64_t i = 0; i < t->count; i++) {
        lua_pushnumber(L, t->values[i]);
        lua_setfield(L, -2, t->names[i]);
    }
    lua_setfield(L, -2, "logs");
}

/* Runs protected: may raise anywhere. */
static int run(lua_State *L)
{
    const function_call *c = lua_touserdata(L, 1);
    luaL_checkstack(L, 16, NULL);
    call_push(L, c->function->all->hold);
    lua_rawgeti(L, -1, c->function->place);
    push_training(L, c->training);
    lua_call(L, 1, 1);
    if (lua_isboolean(L, -1) && !lua_toboolean(L, -1)) c->function->all->stop = true;
    return 0;
}

/* At the end of a training that failed, Eddy has an error already: the function runs without it,
 * and its own errors do not replace it. */
static bool call_after_error(const function *f, function_call *c)
{
    char message[1024];
    const ed_error_code code = ed_error_kind();
    snprintf(message, sizeof message, "%s", ed_error());
    ed_clear_error();
    call_protected(f->all->hold, run, c);
    ed_clear_error();
    ed_fail(code, "%s", message);
    return true;
}

static bool call_function(void *user, ed_training *training)
{
    const function *f = user;
    function_call c = {f, training};
    if (ed_failed()) return call_after_error(f, &c);
    const bool fine = call_protected(f->all->hold, run, &c);
    training->stop |= f->all->stop; /* also after a function stopped an evaluation */
    return fine;
}

/* Holds the functions in the option callbacks of the table at an index of the stack, at their
 * places there. May raise, and nothing may between this and call_release. */
static functions hold_functions(lua_State *L, int at)
{
    push_option(L, at, "callbacks");
    const lua_Integer n = lua_istable(L, -1) ? (lua_Integer)lua_rawlen(L, -1) : 0;
    lua_newtable(L);
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, -2, i) != LUA_TFUNCTION) lua_pop(L, 1), lua_pushboolean(L, false);
        lua_rawseti(L, -2, i);
    }
    const functions held = {n ? call_hold_new(L, -1) : NULL, false};
    lua_pop(L, 2);
    return held;
}

static ed_callback *callback_at(lua_State *L, int at, functions *all, lua_Integer place)
{
    ed_callback *callback = handle_at(L, at, HANDLE_CALLBACK);
    if (callback) return ed_scope_hold(callback);
    if (lua_type(L, at) != LUA_TFUNCTION)
        return ed_fail(ED_INVALID_ARGUMENT, "callback %lld is %s; a callback or function is needed",
                       (long long)place, convert_kind(L, at).s);
    function *f = ed_scope_alloc(sizeof *f);
    if (!f) return NULL;
    *f = (function){all, place};
    return ed_callback_from(call_function, f, NULL);
}

/* ---- Data ------------------------------------------------------------------------------------ */

/* x or y: a dataset, a tensor or what becomes one, or a table of tensors, one for each input or
 * output. In the scope; NULL with an error. */
static void *data_at(lua_State *L, int at)
{
    void *set = handle_at(L, at, HANDLE_DATASET);
    if (set) return ed_scope_hold(set);
    at = lua_absindex(L, at);
    if (lua_type(L, at) != LUA_TTABLE) return ed_scope_hold(convert_operand(L, at, ED_DTYPE_NONE));
    lua_rawgeti(L, at, 1);
    const bool list = handle_at(L, -1, HANDLE_TENSOR) != NULL;
    lua_pop(L, 1);
    return list ? (void *)convert_list(L, at)
                : ed_scope_hold(convert_operand(L, at, ED_DTYPE_NONE));
}

/* The options of fit, evaluate or predict: `functions` is first in all structures. */
typedef struct fit_given {
    functions functions;
    ed_fit_options options;
} fit_given;

typedef struct evaluate_given {
    functions functions;
    ed_evaluate_options options;
} evaluate_given;

/* `to` is the option callbacks of either structure. */
static bool read_callbacks(lua_State *L, int at, const maker_field *field, void *to,
                           convert_room *room)
{
    functions *all = (functions *)((char *)to - field->offset);
    if (lua_type(L, at) != LUA_TTABLE || convert_has_names(L, at))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: callbacks is %s; a table of callbacks and functions is expected",
                       room->who, convert_kind(L, at).s);
    const int64_t n = (int64_t)lua_rawlen(L, at);
    void **callbacks = ed_scope_alloc((size_t)(n + 1) * sizeof *callbacks);
    for (int64_t i = 0; callbacks && i < n; i++) {
        lua_rawgeti(L, at, i + 1);
        callbacks[i] = callback_at(L, lua_gettop(L), all, i + 1);
        lua_pop(L, 1);
        if (!callbacks[i]) return false;
    }
    *(ed_objects *)to = (ed_objects){callbacks, n};
    return callbacks;
}

/* A dataset, or {x, y}. */
static bool read_validation(lua_State *L, int at, const maker_field *field, void *to,
                            convert_room *room)
{
    fit_given *given = (fit_given *)((char *)to - field->offset);
    if (handle_at(L, at, HANDLE_DATASET))
        return (given->options.validation_x = data_at(L, at)) != NULL;
    if (lua_type(L, at) != LUA_TTABLE || lua_rawlen(L, at) != 2 || convert_has_names(L, at))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: validation_data is %s; a dataset or a table {x, y} is expected",
                       room->who, convert_kind(L, at).s);
    lua_rawgeti(L, at, 1);
    given->options.validation_x = data_at(L, -1);
    lua_rawgeti(L, at, 2);
    given->options.validation_y = given->options.validation_x ? data_at(L, -1) : NULL;
    lua_pop(L, 2);
    return given->options.validation_y;
}

#define FIT(name, type)                                                                            \
    {                                                                                              \
#name, ED_FIELD_##type, offsetof(fit_given, options.name)                                  \
    }
#define EVALUATE(name, type)                                                                       \
    {                                                                                              \
#name, ED_FIELD_##type, offsetof(evaluate_given, options.name)                             \
    }

static const maker_field fit_fields[] = {
    FIT(epochs, INT),
    FIT(batch_size, INT),
    FIT(shuffle, BOOL),
    FIT(verbose, INT),
    {"callbacks", .offset = offsetof(fit_given, options.callbacks), .read = read_callbacks},
    FIT(validation_split, FLOAT),
    {"validation_data", .offset = offsetof(fit_given, options.validation_x),
     .read = read_validation},
    FIT(validation_freq, INT),
    FIT(validation_steps, INT),
    {"class_weight", .offset = offsetof(fit_given, options.class_weight), .read = maker_floats},
    {"sample_weight", .offset = offsetof(fit_given, options.sample_weight), .read = maker_floats},
    FIT(initial_epoch, INT),
    FIT(steps_per_epoch, INT),
    FIT(generator, GENERATOR),
    {0},
};

static const maker_field evaluate_fields[] = {
    EVALUATE(batch_size, INT),
    EVALUATE(verbose, INT),
    {"callbacks", .offset = offsetof(evaluate_given, options.callbacks), .read = read_callbacks},
    {"sample_weight", .offset = offsetof(evaluate_given, options.sample_weight),
     .read = maker_floats},
    EVALUATE(steps, INT),
    {0},
};

static const maker_field predict_fields[] = {
    EVALUATE(batch_size, INT),
    EVALUATE(verbose, INT),
    EVALUATE(steps, INT),
    {0},
};

/* Brings the arguments into the form layer, x, y, options: after a dataset the options may follow
 * at once. */
static void arrange(lua_State *L)
{
    lua_settop(L, 4);
    if (!handle_at(L, 2, HANDLE_DATASET) || !lua_isnil(L, 4)) return;
    lua_pushnil(L);
    lua_replace(L, 4);
    lua_insert(L, 3);
}

/* x and y at 2 and 3, and the options at 4; y may be nil. Inside a scope. */
static bool read_call(lua_State *L, const maker_field *fields, void *given, const char *who,
                      void **x, void **y)
{
    convert_room room = {.who = who};
    if (!ed_scope_hold(handle_at(L, 1, HANDLE_LAYER)) || !(*x = data_at(L, 2))) return false;
    *y = NULL;
    if (!lua_isnil(L, 3) && !(*y = data_at(L, 3))) return false;
    return maker_options(L, 4, fields, given, &room);
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Pushes the values of that name as a table. */
static int push_values(lua_State *L, const ed_history *history, const char *name)
{
    handle *made = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    binding_finish(L, &b, made, ed_history_values(history, name));
    convert_push_elements(L, made->object);
    lua_remove(L, -2);
    return 1;
}

/* Pushes a table of the history: of each name a table of the epochs' values, or, with `last`, the
 * only value. */
static int push_history(lua_State *L, const ed_history *history, bool last)
{
    lua_createtable(L, 0, (int)ed_history_count(history) + 1);
    for (int64_t i = 0; i < ed_history_count(history); i++) {
        const char *name = ed_history_name(history, i);
        push_values(L, history, name);
        if (last) {
            lua_rawgeti(L, -1, 1);
            lua_remove(L, -2);
        }
        lua_setfield(L, -2, name);
    }
    if (!last) set_integer(L, "epochs", ed_history_epochs(history));
    return 1;
}

/* fit(x, y, {epochs = , ...}), fit(dataset, {...}): {loss = {...}, epochs = , ...} */
int layer_fit(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checkany(L, 2);
    arrange(L);
    luaL_checkstack(L, 4 * ED_MAX_RANK + 32, NULL);
    handle *holder = handle_new(L, HANDLE_LIST);
    fit_given given = {.options = ED_NEW_OPTIONS(ED_FIT_OPTIONS, ed_fit_options)};
    void *x, *y;
    given.functions = hold_functions(L, 4);
    binding b = binding_open(L);
    ed_history *history = read_call(L, fit_fields, &given, "fit", &x, &y)
                              ? ed_model_fit_with(layer, x, y, &given.options)
                              : NULL;
    handle_put(holder, history);
    binding_close(&b);
    call_release(given.functions.hold);
    return history ? push_history(L, holder->object, false) : handle_raise(L);
}

/* evaluate(x, y, {batch_size = , ...}), evaluate(dataset, {...}): {loss = , ...} */
int layer_evaluate(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checkany(L, 2);
    arrange(L);
    luaL_checkstack(L, 4 * ED_MAX_RANK + 32, NULL);
    handle *holder = handle_new(L, HANDLE_LIST);
    evaluate_given given = {.options = ED_NEW_OPTIONS(ED_EVALUATE_OPTIONS, ed_evaluate_options)};
    void *x, *y;
    given.functions = hold_functions(L, 4);
    binding b = binding_open(L);
    ed_history *history = read_call(L, evaluate_fields, &given, "evaluate", &x, &y)
                              ? ed_model_evaluate_with(layer, x, y, &given.options)
                              : NULL;
    handle_put(holder, history);
    binding_close(&b);
    call_release(given.functions.hold);
    return history ? push_history(L, holder->object, true) : handle_raise(L);
}

/* predict(x, {batch_size = , ...}): a tensor, or a table of those of several outputs. */
int layer_predict(lua_State *L)
{
    ed_layer *layer = handle_check(L, 1, HANDLE_LAYER);
    luaL_checkany(L, 2);
    lua_settop(L, 3);
    lua_pushnil(L);
    lua_insert(L, 3);
    luaL_checkstack(L, 4 * ED_MAX_RANK + 32, NULL);
    handle *holder = handle_new(L, HANDLE_LIST);
    evaluate_given given = {.options = ED_NEW_OPTIONS(ED_EVALUATE_OPTIONS, ed_evaluate_options)};
    void *x, *y;
    binding b = binding_open(L);
    ed_list *outputs = read_call(L, predict_fields, &given, "predict", &x, &y)
                           ? ed_model_predict_list_with(layer, x, &given.options)
                           : NULL;
    objects_finish_list(L, &b, holder, outputs);
    if (lua_rawlen(L, -1) == 1) lua_rawgeti(L, -1, 1);
    return 1;
}
