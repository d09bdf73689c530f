#include "lua/arguments.h"
#include "lua/call.h"
#include "lua/objects.h"
#include <string.h>

/*
 * A Lua table in a checkpoint.
 *
 *     local state = {epoch = 0, best = 0.0}
 *     local ckpt = ed.checkpoint{model = model, state = state}
 *
 * A save takes the present numbers, integers as int64, others as float64; a restore sets them in
 * the table. Variables, layers and other objects in it are saved as such. Functions are ignored;
 * other values are an error. ed.trackable(state) returns the object of the table, for two
 * checkpoints to share, or for a table in a table.
 *
 * Each number has a cell, whose address does not change while the object exists: graphs point to
 * it.
 */

typedef struct lua_trackable lua_trackable;

typedef struct cell {
    struct cell *next;
    lua_trackable *owner;
    bool whole;
    lua_Integer integer;
    lua_Number number;
    char name[];
} cell;

struct lua_trackable {
    call_hold *hold; /* of the table */
    cell *cells;
};

static void push_table(lua_State *L, const lua_trackable *self)
{
    call_push(L, self->hold);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void get_number(const void *self, void *elements)
{
    const cell *c = self;
    if (c->whole)
        memcpy(elements, &c->integer, 8);
    else
        memcpy(elements, &c->number, 8);
}

/* Runs protected, though it creates nothing: the table has the name. */
static int write_number(lua_State *L)
{
    const cell *c = lua_touserdata(L, 1);
    push_table(L, c->owner);
    lua_pushstring(L, c->name);
    if (c->whole)
        lua_pushinteger(L, c->integer);
    else
        lua_pushnumber(L, c->number);
    lua_rawset(L, -3);
    return 0;
}

static void set_number(void *self, const void *elements)
{
    cell *c = self;
    if (c->whole)
        memcpy(&c->integer, elements, 8);
    else
        memcpy(&c->number, elements, 8);
    call_protected(c->owner->hold, write_number, c);
}

static const ed_state whole_state = {ED_INT64, -1, get_number, NULL, set_number};
static const ed_state float_state = {ED_FLOAT64, -1, get_number, NULL, set_number};

static cell *cell_named(lua_trackable *self, const char *name)
{
    for (cell *c = self->cells; c; c = c->next)
        if (!strcmp(c->name, name)) return c;
    cell *c = ed_memory_alloc(sizeof *c + strlen(name) + 1);
    if (!c) return NULL;
    c->owner = self;
    strcpy(c->name, name);
    c->next = self->cells;
    return self->cells = c;
}

/* ---- Tracking -------------------------------------------------------------------------------- */

typedef struct visit {
    lua_trackable *self;
    ed_tracker *tracker;
} visit;

/* Names the value at the top of the stack. */
static void track_value(lua_State *L, const visit *v, const char *name)
{
    if (lua_type(L, -1) != LUA_TNUMBER) {
        binding b = binding_open(L); /* the graph holds its objects */
        void *object = trackables_object(L, lua_gettop(L), name);
        ed_track(v->tracker, name, object);
        binding_close(&b);
        return;
    }
    cell *c = cell_named(v->self, name);
    if (!c) {
        ed_track(v->tracker, name, NULL); /* fails with the error that is kept */
        return;
    }
    c->whole = lua_isinteger(L, -1);
    c->integer = lua_tointeger(L, -1);
    c->number = lua_tonumber(L, -1);
    ed_track_state(v->tracker, name, c, c->whole ? &whole_state : &float_state);
}

/* Runs protected: may raise anywhere. In the order of the names, not of the table. */
static int visit_table(lua_State *L)
{
    const visit *v = lua_touserdata(L, 1);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    push_table(L, v->self);
    lua_Integer n;
    const char **names = objects_entries(L, 2, "checkpoint: a table to save", &n);
    for (lua_Integer i = 0; i < n; i++) {
        const int type = lua_rawgeti(L, -1, i + 1);
        if (type != LUA_TNIL && type != LUA_TFUNCTION) track_value(L, v, names[i]);
        lua_pop(L, 1);
    }
    return 0;
}

static void track(void *user, ed_tracker *tracker)
{
    lua_trackable *self = user;
    visit v = {self, tracker};
    if (!call_protected(self->hold, visit_table, &v)) ed_track(tracker, "", NULL);
}

static void destroy(void *user)
{
    lua_trackable *self = user;
    call_release(self->hold);
    while (self->cells) {
        cell *c = self->cells;
        self->cells = c->next;
        ed_memory_free(c);
    }
    ed_memory_free(self);
}

static const ed_trackable_class table_class = {"trackable", track, destroy};

/* ---- Creation -------------------------------------------------------------------------------- */

void trackables_push(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    handle *h = handle_new(L, HANDLE_TRACKABLE);
    call_hold *hold = call_hold_new(L, at);
    binding b = binding_open(L);
    lua_trackable *self = ed_memory_alloc(sizeof *self);
    if (self) self->hold = hold;
    ed_trackable *object = self ? ed_trackable_new(&table_class, self) : NULL;
    if (!object) {
        call_release(hold);
        ed_memory_free(self);
    }
    binding_finish(L, &b, h, object);
}

void *trackables_object(lua_State *L, int at, const char *name)
{
    static const handle_kind kinds[] = {HANDLE_TENSOR,    HANDLE_LAYER,   HANDLE_OPTIMIZER,
                                        HANDLE_METRIC,    HANDLE_DATASET, HANDLE_GENERATOR,
                                        HANDLE_TRACKABLE, HANDLE_KINDS};
    for (const handle_kind *kind = kinds; *kind != HANDLE_KINDS; kind++) {
        void *object = handle_at(L, at, *kind);
        if (object) return object;
    }
    if (lua_type(L, at) == LUA_TTABLE && !convert_has_names(L, at)) return convert_list(L, at);
    return ed_fail(ED_INVALID_ARGUMENT,
                   "checkpoint: '%s' is %s; a checkpoint saves variables, layers, optimizers, "
                   "metrics, generators, "
                   "datasets, tables of variables and ed.trackable{...}",
                   name, convert_kind(L, at).s);
}

/* trackable(table) */
static int trackable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    trackables_push(L, 1);
    return 1;
}

void trackables_open(lua_State *L)
{
    arguments_push(L, "trackable", trackable);
    lua_setfield(L, -2, "trackable");
}
