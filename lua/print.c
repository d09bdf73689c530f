#include "lua/arguments.h"
#include "lua/objects.h"
#include <string.h>

/* How tensors are printed: print_options, for tostring, print and the prompt. Each Lua state has
 * its own, in a userdata in the registry. */

typedef struct printing {
    ed_print_options options;
    bool width_given, threshold_given; /* by the program: the prompt does not change them */
} printing;

static const char printing_key;

static printing *current(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &printing_key);
    printing *p = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return p;
}

/* ---- print_options --------------------------------------------------------------------------- */

static const ed_field schema[] = ED_FIELDS(ED_PRINT_OPTIONS, ed_print_options);

static bool is_given(lua_State *L, const char *name)
{
    const bool given = lua_istable(L, 1) && lua_getfield(L, 1, name) != LUA_TNIL;
    lua_settop(L, 1);
    return given;
}

/* print_options{threshold = , edge_items = , precision = , width = }: sets them; returns the
 * present ones. */
static int print_options(lua_State *L)
{
    lua_settop(L, 1);
    luaL_checkstack(L, 16, NULL);
    printing *p = current(L);
    printing next = *p;
    next.threshold_given |= is_given(L, "threshold");
    next.width_given |= is_given(L, "width");
    convert_room room = {.who = "print_options"};
    binding b = binding_open(L);
    const bool fine = convert_options(L, 1, schema, &next.options, &room) &&
                      ed_to_string_with(ed_scalar(0), &next.options);
    binding_close(&b);
    if (!fine) return handle_raise(L);
    *p = next;
    lua_createtable(L, 0, 4);
    for (const ed_field *a = schema; a->name; a++) {
        lua_pushinteger(L, *(const int64_t *)((const char *)&next.options + a->offset));
        lua_setfield(L, -2, a->name);
    }
    return 1;
}

/* ---- Strings --------------------------------------------------------------------------------- */

const char *print_string(lua_State *L, const ed_tensor *t)
{
    return ed_to_string_with(t, &current(L)->options);
}

const char *print_sparse(lua_State *L, const ed_sparse_tensor *x)
{
    return ed_sparse_to_string_with(x, &current(L)->options);
}

static int64_t lines_of(const char *s)
{
    int64_t lines = 1;
    for (; (s = strchr(s, '\n')); s++) lines++;
    return lines;
}

const char *print_fitting(lua_State *L, const ed_tensor *t, int columns, int rows)
{
    const printing *p = current(L);
    ed_print_options options = p->options;
    if (!p->width_given && columns > 10) options.width = columns - 1;
    const char *s = ed_to_string_with(t, &options);
    if (p->threshold_given) return s;
    for (options.threshold = 0; s && lines_of(s) > rows && options.edge_items > 0;
         options.edge_items--)
        s = ed_to_string_with(t, &options);
    return s;
}

void print_open(lua_State *L)
{
    printing *p = lua_newuserdatauv(L, sizeof *p, 0);
    *p = (printing){.options = ED_COMPLETE(ED_PRINT_OPTIONS, ed_print_options)};
    lua_rawsetp(L, LUA_REGISTRYINDEX, &printing_key);
    arguments_push(L, "print_options", print_options);
    lua_setfield(L, -2, "print_options");
}
