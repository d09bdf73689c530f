#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/objects.h"
#include "train/train.h"
#include <math.h>
#include <string.h>

/*
 * Checkpoints in Lua.
 *
 *     local state = {epoch = 0}
 *     local ckpt = ed.checkpoint{model = model, optimizer = adam, data = train, state = state}
 *     local manager = ed.checkpoint_manager(ckpt, "save", {max_to_keep = 3})
 *     manager:restore_or_initialize()
 *     ... manager:save{metric = accuracy}
 *     local restoration = ckpt:restore(ed.latest_checkpoint("save"), {partial = true})
 */

/* ---- Creation -------------------------------------------------------------------------------- */

/* Replaces those of the n values in the table at the top of the stack that are tables of named
 * values by trackables. */
static void prepare_parts(lua_State *L, lua_Integer n)
{
    const int values = lua_gettop(L);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, values, i);
        if (convert_has_names(L, -1)) {
            trackables_push(L, -1);
            lua_rawseti(L, values, i);
        }
        lua_settop(L, values);
    }
}

/* The objects in the table at `values`: name, object, name, object, ... */
static bool take_parts(lua_State *L, int values, const char *const *names, lua_Integer n,
                       const void **parts)
{
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, values, i + 1);
        parts[2 * i] = names[i];
        parts[2 * i + 1] = trackables_object(L, lua_gettop(L), names[i]);
        lua_pop(L, 1);
        if (!parts[2 * i + 1]) return false;
    }
    return true;
}

/* checkpoint{name = object, ...} */
static int checkpoint(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_Integer n;
    const char **names = objects_entries(L, 1, "checkpoint", &n);
    const int values = lua_gettop(L);
    prepare_parts(L, n);
    const void **parts = lua_newuserdatauv(L, (size_t)(2 * n + 1) * sizeof *parts, 0);
    handle *h = handle_new(L, HANDLE_CHECKPOINT);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    bool fine = take_parts(L, values, names, n, parts);
    return binding_finish(L, &b, h, fine ? ed_checkpoint_of(parts, 2 * n) : NULL);
}

/* ---- Saving ---------------------------------------------------------------------------------- */

typedef const char *saver(ed_checkpoint *checkpoint, const char *path);

static int save_by(lua_State *L, saver *save)
{
    ed_checkpoint *c = handle_check(L, 1, HANDLE_CHECKPOINT);
    const char *path = maker_check_text(L, 2);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    return binding_finish_text(L, &b, ed_scope_hold(c) ? save(c, path) : NULL);
}

static int save(lua_State *L)
{
    return save_by(L, ed_checkpoint_save);
}

static int write(lua_State *L)
{
    return save_by(L, ed_checkpoint_write);
}

static int save_counter(lua_State *L)
{
    lua_pushinteger(L, ed_checkpoint_save_counter(handle_check(L, 1, HANDLE_CHECKPOINT)));
    return 1;
}

/* latest_checkpoint(folder): nil if there is none. */
static int latest_checkpoint(lua_State *L)
{
    const char *folder = maker_check_text(L, 1);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    return binding_finish_text(L, &b, ed_latest_checkpoint(folder));
}

/* ---- Restoring ------------------------------------------------------------------------------- */

/* renames = {["path here"] = "path in the file"} */
static bool renames_at(lua_State *L, int at, const maker_field *field, void *to, convert_room *room)
{
    if (lua_type(L, at) != LUA_TTABLE)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: %s must be a table of strings, got %s", room->who,
                       field->name, convert_kind(L, at).s),
               false;
    int64_t n = 0, used = 0;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) n++;
    const char **texts = maker_room_for_texts(2 * n);
    if (!texts) return false;
    lua_pushnil(L);
    while (lua_next(L, at)) {
        if (!maker_take_text(L, field, room, &texts[used + 1])) return lua_pop(L, 1), false;
        lua_pushvalue(L, -1);
        if (!maker_take_text(L, field, room, &texts[used])) return lua_pop(L, 1), false;
        used += 2;
    }
    *(ed_strings *)to = (ed_strings){texts, used};
    return true;
}

static const maker_field restore_fields[] = {
    {"partial", ED_FIELD_BOOL, .offset = offsetof(ed_restore_options, partial)},
    {"only", .offset = offsetof(ed_restore_options, only), .read = maker_texts},
    {"skip", .offset = offsetof(ed_restore_options, skip), .read = maker_texts},
    {"renames", .offset = offsetof(ed_restore_options, renames), .read = renames_at},
    {0},
};

typedef ed_restoration *restorer(ed_checkpoint *, const char *, const ed_restore_options *);

static int restore_by(lua_State *L, restorer *restore)
{
    ed_checkpoint *c = handle_check(L, 1, HANDLE_CHECKPOINT);
    const char *path = maker_check_text(L, 2);
    lua_settop(L, 3);
    luaL_checkstack(L, 32, NULL);
    handle *h = handle_new(L, HANDLE_RESTORATION);
    ed_restore_options options = {0};
    convert_room room = {.who = "restore"};
    binding b = binding_open(L);
    bool fine = ed_scope_hold(c) && maker_options(L, 3, restore_fields, &options, &room);
    return binding_finish(L, &b, h, fine ? restore(c, path, &options) : NULL);
}

/* restore(path, {partial = , only = , skip = , renames = }) */
static int restore(lua_State *L)
{
    return restore_by(L, ed_checkpoint_restore_with);
}

static int read(lua_State *L)
{
    return restore_by(L, ed_checkpoint_read_with);
}

static const luaL_Reg checkpoint_methods[] = {
    {"save", save},       {"write", write}, {"save_counter", save_counter},
    {"restore", restore}, {"read", read},   {NULL, NULL},
};

/* ---- Restorations ---------------------------------------------------------------------------- */

/* Pushes a table of the n strings that the getter returns for the object. */
typedef const char *text_getter(const void *object, int kind, int64_t i);

static int push_texts(lua_State *L, const void *object, int kind, int64_t n, text_getter *get)
{
    lua_createtable(L, (int)n, 0);
    luaL_checkstack(L, 8, NULL);
    for (int64_t i = 0; i < n; i++) {
        binding b = binding_open(L);
        binding_finish_text(L, &b, get(object, kind, i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static const char *path_of(const void *restoration, int kind, int64_t i)
{
    return ed_restoration_path(restoration, (ed_restored)kind, i);
}

static int paths(lua_State *L, ed_restored kind)
{
    const ed_restoration *r = handle_check(L, 1, HANDLE_RESTORATION);
    return push_texts(L, r, (int)kind, ed_restoration_count(r, kind), path_of);
}

static int restored(lua_State *L)
{
    return paths(L, ED_RESTORED);
}

static int missing(lua_State *L)
{
    return paths(L, ED_MISSING);
}

static int unexpected(lua_State *L)
{
    return paths(L, ED_UNEXPECTED);
}

static int waiting(lua_State *L)
{
    return paths(L, ED_WAITING);
}

static int report(lua_State *L)
{
    const ed_restoration *r = handle_check(L, 1, HANDLE_RESTORATION);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    return binding_finish_text(L, &b, ed_restoration_report(r));
}

/* They return the restoration. */
static int demand(lua_State *L, bool (*holds)(ed_restoration *))
{
    ed_restoration *r = handle_check(L, 1, HANDLE_RESTORATION);
    lua_settop(L, 1);
    return handle_return(L, holds(r));
}

static int assert_consumed(lua_State *L)
{
    return demand(L, ed_restoration_assert_consumed);
}

static int assert_existing_objects_matched(lua_State *L)
{
    return demand(L, ed_restoration_assert_existing_objects_matched);
}

static int assert_nontrivial_match(lua_State *L)
{
    return demand(L, ed_restoration_assert_nontrivial_match);
}

static int expect_partial(lua_State *L)
{
    return demand(L, ed_restoration_expect_partial);
}

static const luaL_Reg restoration_methods[] = {
    {"restored", restored},
    {"missing", missing},
    {"unexpected", unexpected},
    {"waiting", waiting},
    {"report", report},
    {"assert_consumed", assert_consumed},
    {"assert_existing_objects_matched", assert_existing_objects_matched},
    {"assert_nontrivial_match", assert_nontrivial_match},
    {"expect_partial", expect_partial},
    {NULL, NULL},
};

static const luaL_Reg restoration_metamethods[] = {{"__tostring", report}, {NULL, NULL}};

/* ---- The manager ----------------------------------------------------------------------------- */

typedef struct manager {
    ed_checkpoint *checkpoint;
    const char *folder;
    ed_checkpoint_manager_options options;
} manager;

static bool best_is(lua_State *L, int at, const maker_field *field, void *to, convert_room *room)
{
    static const char *const names[] = {
        [ED_BEST_NONE] = "none", [ED_BEST_HIGHEST] = "highest", [ED_BEST_LOWEST] = "lowest"};
    const char *name = lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) {
            *(ed_best *)to = (ed_best)i;
            return true;
        }
    return ed_fail(ED_INVALID_ARGUMENT, "%s: %s must be \"highest\" or \"lowest\"", room->who,
                   field->name),
           false;
}

static const maker_field manager_fields[] = {
    {"checkpoint", ED_FIELD_OBJECT, .offset = offsetof(manager, checkpoint), HANDLE_CHECKPOINT},
    {"folder", ED_FIELD_STRING, .offset = offsetof(manager, folder)},
    {"max_to_keep", ED_FIELD_INT, .offset = offsetof(manager, options.max_to_keep)},
    {"keep_checkpoint_every_n_hours", ED_FIELD_FLOAT,
     .offset = offsetof(manager, options.keep_checkpoint_every_n_hours)},
    {"checkpoint_name", ED_FIELD_STRING, .offset = offsetof(manager, options.checkpoint_name)},
    {"step_counter", ED_FIELD_OBJECT, .offset = offsetof(manager, options.step_counter),
     HANDLE_TENSOR},
    {"checkpoint_interval", ED_FIELD_INT, .offset = offsetof(manager, options.checkpoint_interval)},
    {"best", .offset = offsetof(manager, options.best), .read = best_is},
    {0},
};

static void *make_manager(const void *arguments)
{
    const manager *m = arguments;
    return ed_checkpoint_manager_with(m->checkpoint, m->folder, &m->options);
}

static const maker makers[] = {
    {"checkpoint_manager", HANDLE_MANAGER, 2, 2, manager_fields, sizeof(manager), NULL,
     make_manager},
    {0},
};

/* save{metric = , number = , any_step = , in_background = , weights_only = }: the path; nil if
 * checkpoint_interval has not passed. */
static int manager_save(lua_State *L)
{
    static const ed_field fields[] = ED_FIELDS(ED_MANAGER_SAVE_OPTIONS, ed_manager_save_options);
    ed_checkpoint_manager *m = handle_check(L, 1, HANDLE_MANAGER);
    lua_settop(L, 2);
    luaL_checkstack(L, 16, NULL);
    ed_manager_save_options options =
        ED_NEW_OPTIONS(ED_MANAGER_SAVE_OPTIONS, ed_manager_save_options);
    convert_room room = {.who = "save"};
    binding b = binding_open(L);
    const char *path = ed_scope_hold(m) && convert_schema(L, 2, fields, 0, &options, &room)
                           ? ed_manager_save_with(m, &options)
                           : NULL;
    return binding_finish_text(L, &b, path && *path ? path : NULL);
}

static int wait(lua_State *L)
{
    ed_checkpoint_manager *m = handle_check(L, 1, HANDLE_MANAGER);
    lua_settop(L, 1);
    return handle_return(L, ed_manager_wait(m));
}

/* restore_or_initialize(initialize): the path that was restored; nil if there is none, after
 * initialize(), if given. */
static int restore_or_initialize(lua_State *L)
{
    ed_checkpoint_manager *m = handle_check(L, 1, HANDLE_MANAGER);
    if (!lua_isnoneornil(L, 2)) luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    const char *path = ed_scope_hold(m) ? ed_manager_restore_or_initialize(m) : NULL;
    binding_finish_text(L, &b, path && *path ? path : NULL);
    if (lua_isnil(L, 3) && !lua_isnil(L, 2)) {
        lua_pushvalue(L, 2);
        lua_call(L, 0, 0);
    }
    return 1;
}

/* The report of that restore; nil if nothing was restored. */
static int restoration(lua_State *L)
{
    const ed_checkpoint_manager *m = handle_check(L, 1, HANDLE_MANAGER);
    handle *h = handle_new(L, HANDLE_RESTORATION);
    handle_put(h, ed_manager_restoration(m));
    if (!h->object) lua_pushnil(L);
    return 1;
}

static int push_text_of(lua_State *L, const char *(*get)(const ed_checkpoint_manager *))
{
    const ed_checkpoint_manager *m = handle_check(L, 1, HANDLE_MANAGER);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    return binding_finish_text(L, &b, get(m));
}

static int skipped(lua_State *L)
{
    return push_text_of(L, ed_manager_skipped);
}

static const char *checkpoint_of(const void *keeper, int unused, int64_t i)
{
    (void)unused;
    return ed_manager_checkpoint(keeper, i);
}

static int push_checkpoints(lua_State *L)
{
    const ed_checkpoint_manager *m = handle_check(L, 1, HANDLE_MANAGER);
    return push_texts(L, m, 0, ed_manager_count(m), checkpoint_of);
}

static int manager_index(lua_State *L)
{
    handle_check(L, 1, HANDLE_MANAGER);
    if (objects_method(L)) return 1;
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (!strcmp(key, "latest")) return push_text_of(L, ed_manager_latest);
    if (!strcmp(key, "best")) return push_text_of(L, ed_manager_best);
    if (!strcmp(key, "checkpoints")) return push_checkpoints(L);
    return objects_no_field(L);
}

static int manager_count(lua_State *L)
{
    lua_pushinteger(L, ed_manager_count(handle_check(L, 1, HANDLE_MANAGER)));
    return 1;
}

static const luaL_Reg manager_methods[] = {
    {"save", manager_save},
    {"wait", wait},
    {"restore_or_initialize", restore_or_initialize},
    {"restoration", restoration},
    {"skipped", skipped},
    {NULL, NULL},
};

static const luaL_Reg manager_metamethods[] = {{"__len", manager_count}, {NULL, NULL}};

static const luaL_Reg functions[] = {
    {"checkpoint", checkpoint}, {"latest_checkpoint", latest_checkpoint}, {NULL, NULL}};

void checkpoints_open(lua_State *L)
{
    maker_open(L, makers);
    arguments_set(L, NULL, functions);
    objects_methods(L, HANDLE_CHECKPOINT, checkpoint_methods, NULL, NULL);
    objects_methods(L, HANDLE_RESTORATION, restoration_methods, restoration_metamethods, NULL);
    objects_methods(L, HANDLE_MANAGER, manager_methods, manager_metamethods, manager_index);
}
