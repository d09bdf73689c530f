#include "lua/own.h"

/*
 * Who a layer written in Lua is, in Lua: one userdata, which has the fields.
 *
 *     userdata ----(table `fields`, weak keys)----> fields ---metatable---> the description
 *        |
 *        `--one reference--> layer ---its state---> hold: the userdata, or false
 *
 * The fields may lead back to the userdata (self.me = self, or a function that knows self). While
 * Lua alone has the layer nothing of this is a root, so Lua's collector sees such a circle and
 * takes all of it. Where C has the layer too (in a model) and nobody in Lua, the collector finds
 * the userdata dead as well. Its finalizer then hangs it, and with it the fields, on the hold,
 * which is a root. Once the userdata has the last reference, which is looked at whenever Lua has
 * collected, it is let go, and Lua's collector decides again. A child of another layer written in
 * Lua needs no root: the fields of its parent have it.
 */

/* Keys of the registry: userdata -> fields; layer -> userdata not held, both weak; the metatable of
 * such userdata. */
static const char fields_key, selves_key, metatable_key;

static const own_state *state_of(ed_layer *layer)
{
    return ed_layer_state(layer);
}

static bool is_held(lua_State *L, ed_layer *layer)
{
    call_push(L, state_of(layer)->self);
    const bool held = lua_type(L, -1) == LUA_TUSERDATA;
    lua_pop(L, 1);
    return held;
}

/* Lets the userdata at `at`, which lives again, be finalized again. */
static void mark_again(lua_State *L, int at)
{
    lua_getmetatable(L, at);
    lua_setmetatable(L, at);
}

/* Whether someone has the layer of whom Lua knows nothing: not its own userdata, nor a parent
 * written in Lua, whose fields have the child. */
static bool is_used(const ed_layer *layer)
{
    return layer->object.refs > 1 && !(layer->parent && own_layers_is(layer->parent));
}

/* __gc and __close, with the function of other handles as upvalue. Holding takes no memory. */
static int end(lua_State *L)
{
    handle *h = handle_name(L, 1) ? lua_touserdata(L, 1) : NULL;
    if (!h) return 0;
    ed_layer *layer = h->object;
    if (!layer || layer->object.refs == 1) return lua_tocfunction(L, lua_upvalueindex(1))(L);
    lua_settop(L, 1);
    mark_again(L, 1);
    if (!is_used(layer)) {
        own_self_known(L, layer);
        return 0;
    }
    lua_pushvalue(L, 1);
    call_hold_set(L, state_of(layer)->self);
    return 0;
}

void own_self_begin(lua_State *L, int fields)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable_key);
    lua_setmetatable(L, -2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, fields);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

void own_self_known(lua_State *L, ed_layer *layer)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &selves_key);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, layer);
    lua_pop(L, 1);
}

/* Between being found dead and its finalizer a userdata is not in `selves`; weak keys stay. Pushes
 * it; false and nothing if there is none. */
static bool push_dying(lua_State *L, const ed_layer *layer)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (((const handle *)lua_touserdata(L, -2))->object == layer) {
            lua_pop(L, 1);
            lua_replace(L, -2);
            return true;
        }
    lua_pop(L, 1);
    return false;
}

void own_self_push(lua_State *L, ed_layer *layer)
{
    luaL_checkstack(L, 6, NULL);
    call_push(L, state_of(layer)->self);
    if (lua_type(L, -1) != LUA_TUSERDATA) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &selves_key);
        lua_rawgetp(L, -1, layer);
        lua_replace(L, -3);
        lua_pop(L, 1);
    }
    const handle *found = lua_touserdata(L, -1);
    if (!found || found->object != layer) {
        lua_pop(L, 1);
        if (!push_dying(L, layer)) luaL_error(L, "%s: the layer was closed", ed_layer_name(layer));
    }
    ((handle *)lua_touserdata(L, -1))->closed = false;
}

void own_self_push_fields(lua_State *L, ed_layer *layer)
{
    own_self_push(L, layer);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    lua_insert(L, -2);
    lua_rawget(L, -2);
    lua_replace(L, -2);
}

/* ---- After each collection, and at the state's end ------------------------------------------- */

/* Lets go those userdata of which nobody else has the layer any more. */
static int look(lua_State *L)
{
    lua_settop(L, 1);
    mark_again(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    for (lua_pushnil(L); lua_next(L, 2); lua_settop(L, 3)) {
        ed_layer *layer = ((const handle *)lua_touserdata(L, 3))->object;
        if (!layer || is_used(layer) || !is_held(L, layer)) continue;
        lua_pushvalue(L, 3);
        own_self_known(L, layer);
        lua_pushboolean(L, false);
        call_hold_set(L, state_of(layer)->self);
    }
    return 0;
}

/* The state is closed, and all else was finalized: what was held has its reference still. */
static int give_up(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        handle *h = lua_touserdata(L, -2);
        void *layer = h->object;
        h->closed = true;
        h->object = NULL;
        ed_release(layer);
    }
    return 0;
}

/* A userdata with that finalizer, on the stack. */
static void push_finalized(lua_State *L, lua_CFunction finalizer)
{
    lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, finalizer);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
}

static void open_table(lua_State *L, const char *mode, const void *key)
{
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* A layer's metatable with ends of its own. */
static void open_metatable(lua_State *L)
{
    static const char *const ends[] = {"__gc", "__close"};
    lua_newtable(L);
    luaL_getmetatable(L, "eddy.layer");
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -6);
    }
    for (int i = 0; i < 2; i++) {
        lua_getfield(L, -1, ends[i]);
        lua_pushcclosure(L, end, 1);
        lua_setfield(L, -3, ends[i]);
    }
    lua_pop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable_key);
}

void own_self_open(lua_State *L)
{
    static const char last_key;
    open_table(L, "k", &fields_key);
    open_table(L, "v", &selves_key);
    open_metatable(L);
    push_finalized(L, give_up); /* the first that is made is the last that is finalized */
    lua_rawsetp(L, LUA_REGISTRYINDEX, &last_key);
    push_finalized(L, look); /* dead at once: it hears of each collection */
    lua_pop(L, 1);
}
