#include "lua/arguments.h"
#include "lua/handle.h"

/* ---- When to collect ------------------------------------------------------------------------- */

/*
 * Lua sees small userdata and would let gigabytes accumulate behind them. So before an object is
 * created, Eddy's live bytes are compared with their minimum since the last collection; if they
 * have grown by much, garbage is collected first. All memory counts: tensors, layers, an
 * optimizer's slots.
 */
enum { LEAST_GROWTH = 32 << 20 };
static __thread int64_t least;

void garbage_collect(lua_State *L)
{
    int64_t live = ed_memory_live();
    if (live < least) least = live;
    if (live - least <= LEAST_GROWTH + least / 8 || lua_gc(L, LUA_GCISRUNNING) != 1) return;
    lua_gc(L, LUA_GCCOLLECT);
    least = ed_memory_live();
}

/* ---- Lines that created tensors -------------------------------------------------------------- */

__thread bool garbage_traced;
static const char places_key; /* handle -> line; weak */

void garbage_note(lua_State *L)
{
    luaL_checkstack(L, 4, NULL);
    if (!handle_push_place(L)) return;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &places_key);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_pop(L, 2);
}

/* memory_trace(on): whether the lines that create tensors are recorded from now on; returns
 * whether they were before. */
static int trace(lua_State *L)
{
    lua_pushboolean(L, garbage_traced);
    if (!lua_isnone(L, 1)) garbage_traced = lua_toboolean(L, 1);
    return 1;
}

/* Adds to the field of the table at the top of the stack. */
static void add_to_field(lua_State *L, const char *field, int64_t n)
{
    lua_getfield(L, -1, field);
    lua_pushinteger(L, lua_tointeger(L, -1) + n);
    lua_setfield(L, -3, field);
    lua_pop(L, 1);
}

/* memory_lines(): {{place = , tensors = , bytes = }, ...} of the recorded tensors that still
 * exist; tensors that share memory count it once each. */
static int lines(lua_State *L)
{
    lua_settop(L, 0);
    lua_newtable(L);
    lua_newtable(L); /* line -> its entry */
    lua_rawgetp(L, LUA_REGISTRYINDEX, &places_key);
    for (lua_pushnil(L); lua_next(L, 3); lua_settop(L, 4)) {
        const ed_tensor *t = handle_at(L, 4, HANDLE_TENSOR);
        if (!t) continue;
        const int64_t bytes = ed_size(t) * (int64_t)ed_dtype_size(ed_dtype_of(t));
        lua_pushvalue(L, 5);
        if (lua_rawget(L, 2) == LUA_TNIL) {
            lua_createtable(L, 0, 3);
            lua_pushvalue(L, 5);
            lua_setfield(L, -2, "place");
            lua_pushvalue(L, 5);
            lua_pushvalue(L, -2);
            lua_rawset(L, 2);
            lua_pushvalue(L, -1);
            lua_rawseti(L, 1, (lua_Integer)lua_rawlen(L, 1) + 1);
        }
        add_to_field(L, "tensors", 1);
        add_to_field(L, "bytes", bytes);
    }
    lua_settop(L, 1);
    return 1;
}

/* ---- Figures --------------------------------------------------------------------------------- */

/* memory(): Eddy's memory statistics. */
static int memory(lua_State *L)
{
    const ed_memory m = ed_memory_stats();
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {{"live_tensors", m.live_tensors},
                  {"live_bytes", m.live_bytes},
                  {"peak_bytes", m.peak_bytes},
                  {"cached_bytes", m.cached_bytes}};
    lua_createtable(L, 0, 4);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lua_pushinteger(L, fields[i].value);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

static int reset_peak(lua_State *L)
{
    (void)L;
    ed_memory_reset_peak();
    return 0;
}

/* memory_trim(): the number of bytes returned to the system. */
static int trim(lua_State *L)
{
    lua_pushinteger(L, ed_memory_trim());
    return 1;
}

static int set_cache_limit(lua_State *L)
{
    ed_memory_set_cache_limit(luaL_checkinteger(L, 1));
    return 0;
}

static const luaL_Reg functions[] = {
    {"memory", memory},
    {"memory_reset_peak", reset_peak},
    {"memory_trim", trim},
    {"memory_set_cache_limit", set_cache_limit},
    {"memory_trace", trace},
    {"memory_lines", lines},
    {NULL, NULL},
};

void garbage_open(lua_State *L)
{
    handle_new_weak(L, "k", &places_key);
    arguments_set(L, NULL, functions);
}
