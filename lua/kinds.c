#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/objects.h"
#include <string.h>

/* Functions that create the objects of each kind (tensor/schema.h), from its schema alone:
 * ed.layers.dense, ed.optimizers.adam, ... and, where no other function has the name, ed.dense,
 * ed.adam; but for losses, whose names are much like those of ops. A new kind needs no code
 * here. */

static const struct {
    const char *family, *space;
    handle_kind kind;
} families[] = {
    {"layer", "layers", HANDLE_LAYER},
    {"optimizer", "optimizers", HANDLE_OPTIMIZER},
    {"metric", "metrics", HANDLE_METRIC},
    {"initializer", "initializers", HANDLE_INITIALIZER},
    {"regularizer", "regularizers", HANDLE_REGULARIZER},
    {"constraint", "constraints", HANDLE_CONSTRAINT},
    {"schedule", "schedules", HANDLE_SCHEDULE},
    {"loss", "losses", HANDLE_LOSS},
    {"callback", "callbacks", HANDLE_CALLBACK},
};

enum { FAMILIES = sizeof families / sizeof *families };

static int count_fields(const ed_kind *kind)
{
    int n = 0;
    while (kind->fields && kind->fields[n].name) n++;
    return n;
}

/* The maker of a kind, in a userdata at the top of the stack. The options without a default, or
 * else the first one unless it is a boolean, are given by position. */
static const maker *new_maker(lua_State *L, const ed_kind *kind, handle_kind made)
{
    const int n = count_fields(kind);
    kind_maker *m = lua_newuserdatauv(L, sizeof *m + (size_t)(n + 1) * sizeof(maker_field), 0);
    maker_field *fields = (maker_field *)(m + 1);
    for (int i = 0; i < n; i++)
        fields[i] = (maker_field){.name = kind->fields[i].name,
                                  .type = kind->fields[i].type,
                                  .offset = kind->fields[i].offset,
                                  .schema = &kind->fields[i]};
    fields[n] = (maker_field){0};
    m->of = kind;
    m->base = (maker){.name = kind->name,
                      .kind = (int)made,
                      .places = kind->required ? kind->required
                                               : n > 0 && kind->fields[0].type != ED_FIELD_BOOL,
                      .needed = kind->required,
                      .fields = fields,
                      .size = kind->options_size,
                      .defaults = kind->defaults};
    return &m->base;
}

/* Pushes the table of a namespace in the module; creates it if it is missing. */
static void push_space(lua_State *L, int module, const char *name)
{
    if (lua_getfield(L, module, name) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, module, name);
}

static void open_kind(lua_State *L, int module, const ed_kind *kind, int family)
{
    if (kind->options_size > MAKER_SIZE) return;
    push_space(L, module, families[family].space);
    maker_push(L, new_maker(L, kind, families[family].kind));
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, kind->name);
    if (kind->short_name) {
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, kind->short_name);
    }
    const bool taken = lua_getfield(L, module, kind->name) != LUA_TNIL;
    lua_pop(L, 1);
    if (!taken && families[family].kind != HANDLE_LOSS) lua_setfield(L, module, kind->name);
    lua_settop(L, module);
}

/* to_json(object): the JSON of its kind and options. */
static int to_json(lua_State *L)
{
    const void *object = NULL;
    for (int f = 0; f < FAMILIES && !object; f++) object = handle_at(L, 1, families[f].kind);
    if (!object)
        return handle_fail(L, "to_json: expected an object made from options, such as a layer");
    lua_settop(L, 1);
    luaL_checkstack(L, 4, NULL);
    binding b = binding_open(L);
    return binding_finish_text(L, &b, ed_to_json(object));
}

/* from_json(string): a new object from that. */
static int from_json(lua_State *L)
{
    const char *json = maker_check_text(L, 1);
    handle *made[FAMILIES];
    lua_settop(L, 1);
    luaL_checkstack(L, FAMILIES + 8, NULL);
    for (int f = 0; f < FAMILIES; f++) made[f] = handle_new(L, families[f].kind);
    binding b = binding_open(L);
    void *object = ed_from_json(json);
    int at = 0;
    for (int f = 0; object && f < FAMILIES; f++)
        if (!strcmp(families[f].family, ed_kind_of(object)->family)) at = f + 1;
    if (at) handle_put(made[at - 1], object);
    binding_close(&b);
    if (!at) return handle_raise(L);
    lua_settop(L, at + 1);
    return 1;
}

void kinds_open(lua_State *L)
{
    const int module = lua_gettop(L);
    arguments_push(L, "to_json", to_json);
    lua_setfield(L, module, "to_json");
    arguments_push(L, "from_json", from_json);
    lua_setfield(L, module, "from_json");
    for (int i = 0; i < ed_kind_count(); i++) {
        const ed_kind *kind = ed_kind_at(i);
        for (int f = 0; f < FAMILIES; f++)
            if (!strcmp(families[f].family, kind->family)) open_kind(L, module, kind, f);
    }
}
