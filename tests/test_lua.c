/*
 * Lua's side: every tests/lua/x.lua runs in a Lua of its own that has the module, and what it made
 * is gone when that Lua is closed. Then a script of a bit of everything, with memory refused at
 * every place in turn, Eddy's and Lua's: each ends as a Lua error, and nothing stays behind.
 */
#include "eddy.h"
#include "lua/handle.h"
#include "tests/folders.h"
#include <glob.h>
#include <lauxlib.h>
#include <lualib.h>

int luaopen_eddy(lua_State *L);

/* ---- Scripts --------------------------------------------------------------------------------- */

/* Globals: ed; folder, an empty one; exported, the names that the library exports. */
static int open_all(lua_State *L)
{
    luaL_openlibs(L);
    luaL_requiref(L, "eddy", luaopen_eddy, 0);
    lua_setglobal(L, "ed");
    lua_getglobal(L, "package");
    lua_pushliteral(L, "tests/lua/lib/?.lua");
    lua_setfield(L, -2, "path");
    return 0;
}

static int with_trace(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

static void push_exported(lua_State *L)
{
    char command[4200], line[512];
    snprintf(command, sizeof command, "nm -D --defined-only '%s'", built("libeddy.so"));
    FILE *names = popen(command, "r");
    assert_non_null(names);
    lua_newtable(L);
    while (fgets(line, sizeof line, names)) {
        char *name = strstr(line, " T ed_");
        if (!name) continue;
        lua_pushlstring(L, name + 3, strcspn(name + 3, "\n"));
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
    assert_int_equal(pclose(names), 0);
}

static void run_script(void **path)
{
    int64_t before = ed_memory_stats().live_tensors;
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    lua_pushcfunction(L, with_trace);
    lua_pushcfunction(L, open_all);
    assert_int_equal(lua_pcall(L, 0, 0, 0), LUA_OK);
    push_exported(L);
    lua_setglobal(L, "exported");
    lua_pushstring(L, fresh_folder("script"));
    lua_setglobal(L, "folder");
    bool fine = luaL_loadfile(L, *path) == LUA_OK && lua_pcall(L, 0, 0, 1) == LUA_OK;
    char message[4096] = "";
    if (!fine) snprintf(message, sizeof message, "%s", lua_tostring(L, -1));
    lua_close(L);
    if (!fine) fail_msg("%s", message);
    assert_fine();
    assert_int_equal(ed_memory_stats().live_tensors, before);
}

/* ---- Refused memory -------------------------------------------------------------------------- */

typedef struct allowance {
    int64_t left; /* allocations until all are refused; -1: none is */
} allowance;

static void *allocate(void *user, void *block, size_t old, size_t size)
{
    allowance *a = user;
    (void)old;
    if (!size) return free(block), NULL;
    bool grows = !block || size > old;
    if (a->left >= 0 && grows && a->left-- == 0) return a->left = 0, NULL;
    return realloc(block, size);
}

/* Runs the file after the module was loaded; the error, if there is one, goes into the message. */
static bool try_script(const char *path, allowance *a, int64_t refuse_lua, int64_t refuse_eddy,
                       char *message, size_t size)
{
    *a = (allowance){.left = -1};
    lua_State *L = lua_newstate(allocate, a);
    assert_non_null(L);
    lua_gc(L, LUA_GCSTOP); /* as long as nothing is refused it would only take time */
    lua_pushcfunction(L, open_all);
    assert_int_equal(lua_pcall(L, 0, 0, 0), LUA_OK);
    lua_pushstring(L, fresh_folder("script"));
    lua_setglobal(L, "folder");
    assert_int_equal(luaL_loadfile(L, path), LUA_OK);
    lua_gc(L, LUA_GCRESTART);
    a->left = refuse_lua;
    ed_memory_fail_at(refuse_eddy, false);
    bool fine = lua_pcall(L, 0, 0, 0) == LUA_OK;
    ed_memory_fail_at(-1, false);
    a->left = -1;
    snprintf(message, size, "%s", fine ? "" : luaL_tolstring(L, -1, NULL));
    lua_close(L);
    return fine;
}

static const char everything[] = "tests/lua/everything.lua";

#ifdef EDDY_SANITIZED
enum { STRIDE = 3 }; /* a Lua with the module takes its time there */
#else
enum { STRIDE = 1 };
#endif

/* Every allocation of the script's fails in turn, Lua's or Eddy's; sanitized, every third. There
 * are so many at least. */
static void refuse_each(bool eddys, int least)
{
    int64_t before = ed_memory_stats().live_tensors;
    allowance a;
    char message[1024];
    bool fine = false;
    int refused = 0;
    for (int64_t n = 0; !fine; n += STRIDE) {
        fine = try_script(everything, &a, eddys ? -1 : n, eddys ? n : -1, message, sizeof message);
        if (!fine && !strstr(message, "memory")) fail_msg("allocation %d: %s", (int)n, message);
        assert_fine();
        assert_int_equal(ed_memory_stats().live_tensors, before);
        refused += !fine;
    }
    assert_true(refused > least / STRIDE);
}

static void eddy_may_refuse_memory(void **unused)
{
    (void)unused;
    refuse_each(true, 1000);
}

static void lua_may_refuse_memory(void **unused)
{
    (void)unused;
    refuse_each(false, 200);
}

/* ---- Several states -------------------------------------------------------------------------- */

static lua_State *open_state(void)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    lua_pushcfunction(L, open_all);
    assert_int_equal(lua_pcall(L, 0, 0, 0), LUA_OK);
    return L;
}

/* A layer written in one state and called from another runs in its own; once that is closed, the
 * call is an error. */
static void states_share_layers(void **unused)
{
    (void)unused;
    lua_State *a = open_state(), *b = open_state();
    assert_int_equal(luaL_dostring(a, "factor = 2 layer = ed.layer{forward = function(self, x) "
                                      "return x * factor end}()"),
                     LUA_OK);
    lua_getglobal(a, "layer");
    handle_put(handle_new(b, HANDLE_LAYER), handle_at(a, -1, HANDLE_LAYER));
    lua_setglobal(b, "layer");
    if (luaL_dostring(b, "return layer(ed.ones{1}):item()")) fail_msg("%s", lua_tostring(b, -1));
    assert_true(lua_tonumber(b, -1) == 2);
    lua_close(a);
    assert_true(luaL_dostring(b, "return layer(ed.ones{1}):item()"));
    assert_non_null(strstr(lua_tostring(b, -1), "the Lua state was closed"));
    lua_close(b);
    assert_fine();
}

/* ---- A program's own op ---------------------------------------------------------------------- */

/* counted: what its attributes are, as C gets them. The type says what counts, not the name. */
typedef struct counted_attrs {
    int64_t axis, which;
    ed_ints order;
} counted_attrs;

static const ed_field counted_schema[] = {
    {"axis", ED_FIELD_INT, offsetof(counted_attrs, axis), "a number, whatever its name"},
    {"which", ED_FIELD_AXIS, offsetof(counted_attrs, which), "an index"},
    {"order", ED_FIELD_AXES, offsetof(counted_attrs, order), "indices"},
    {0}};

static bool counted_infer(ed_call *call)
{
    const counted_attrs *attrs = call->attrs;
    const int64_t size = 2 + attrs->order.count;
    return ed_call_output(call, 0, ED_INT64, 1, &size);
}

static bool counted_kernel(ed_call *call)
{
    const counted_attrs *attrs = call->attrs;
    int64_t *y = ed_call_data(call, 0);
    y[0] = attrs->axis;
    y[1] = attrs->which;
    for (int64_t i = 0; i < attrs->order.count; i++) y[2 + i] = attrs->order.values[i];
    return true;
}

static bool counted_reference(const ed_call *call)
{
    return ed_fail(ED_UNIMPLEMENTED, "%s has none", call->op->name), false;
}

static const ed_op counted = {
    .name = "counted",
    .doc = "its own attributes",
    .attrs = counted_schema,
    .attrs_size = sizeof(counted_attrs),
    .infer = counted_infer,
    .kernel = counted_kernel,
    .no_gradient = "it has no operand",
    .reference = counted_reference,
};

static void types_say_what_counts(void **unused)
{
    (void)unused;
    assert_true(ed_op_register(&counted));
    lua_State *L = open_state();
    if (luaL_dostring(L, "local y = ed.counted{axis = 3, which = 3, order = {1, -1, 2}} "
                         "assert(table.concat(y:totable(), ' ') == '3 2 0 -1 1') "
                         "assert(ed.counted(0, 1, {}):sum():item() == 0) "
                         "assert(not pcall(ed.counted, 0, 0))"))
        fail_msg("%s", lua_tostring(L, -1));
    lua_close(L);
    assert_fine();
}

int main(void)
{
    glob_t scripts;
    if (glob("tests/lua/*.lua", 0, NULL, &scripts)) return 1;
    struct CMUnitTest *tests = calloc(scripts.gl_pathc + 4, sizeof *tests);
    size_t n = 0;
    for (; n < scripts.gl_pathc; n++)
        tests[n] = (struct CMUnitTest){
            .name = scripts.gl_pathv[n],
            .test_func = run_script,
            .initial_state = scripts.gl_pathv[n],
        };
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(eddy_may_refuse_memory);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(lua_may_refuse_memory);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(states_share_layers);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(types_say_what_counts);
    int failed = _cmocka_run_group_tests("lua", tests, n, folder_begin, folder_end);
    free(tests);
    globfree(&scripts);
    return failed;
}
