#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/objects.h"
#include <string.h>

/*
 * Files of tensors in Lua.
 *
 *     ed.read_npy(path), ed.write_npy(path, x), ed.read_idx(path)
 *     ed.all_close(a, b, {rtol =, atol =}), ed.golden_check(path, x, {rtol =, atol =})
 *     ed.save(path, {a = x, b = y}, {format = "npz"})
 *     local tensors = ed.load(path)         tensors.a
 *     local file = ed.archive(path)         file.a, file[1], file:names(), file:shape("a")
 */

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct source {
    const char *path;
} source;

static const maker_field source_fields[] = {
    {"path", ED_FIELD_STRING, .offset = offsetof(source, path)}, {0}};

static void *make_npy(const void *arguments)
{
    return ed_read_npy(((const source *)arguments)->path);
}

static void *make_idx(const void *arguments)
{
    return ed_read_idx(((const source *)arguments)->path);
}

static void *make_archive(const void *arguments)
{
    return ed_archive_open(((const source *)arguments)->path);
}

static const maker makers[] = {
    {"read_npy", HANDLE_TENSOR, 1, 1, source_fields, sizeof(source), NULL, make_npy},
    {"read_idx", HANDLE_TENSOR, 1, 1, source_fields, sizeof(source), NULL, make_idx},
    {"archive", HANDLE_ARCHIVE, 1, 1, source_fields, sizeof(source), NULL, make_archive},
    {0},
};

/* ---- Archives -------------------------------------------------------------------------------- */

/* The index (from 0) of the tensor that the argument gives by name or index (from 1). Raises if
 * there is none. */
static int64_t place(lua_State *L, const ed_archive *archive, int at)
{
    int64_t count = ed_archive_count(archive), i;
    if (lua_type(L, at) == LUA_TSTRING) {
        const char *name = maker_check_text(L, at);
        i = ed_archive_find(archive, name);
        if (i < 0) handle_fail(L, "the archive has no tensor '%s'", name);
        return i;
    }
    i = maker_check_integer(L, at);
    if (!i || i > count || i < -count)
        handle_fail(L, "the archive has %I tensors, counted from 1; index %I is out of bounds",
                    (LUAI_UACINT)count, (LUAI_UACINT)i);
    return i > 0 ? i - 1 : i + count;
}

static int push_tensor(lua_State *L, ed_archive *archive, int64_t i)
{
    handle *h = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    return binding_finish(L, &b, h, ed_archive_tensor(archive, i));
}

static int tensor(lua_State *L)
{
    ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    return push_tensor(L, archive, place(L, archive, 2));
}

static int format(lua_State *L)
{
    lua_pushstring(L, ed_archive_format(handle_check(L, 1, HANDLE_ARCHIVE)));
    return 1;
}

static int names(lua_State *L)
{
    const ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    int64_t n = ed_archive_count(archive);
    lua_createtable(L, (int)n, 0);
    for (int64_t i = 0; i < n; i++) {
        lua_pushstring(L, ed_archive_name(archive, i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int name(lua_State *L)
{
    const ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    lua_pushstring(L, ed_archive_name(archive, place(L, archive, 2)));
    return 1;
}

/* find(name): the index, from 1; nil if there is none. */
static int find(lua_State *L)
{
    const ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    int64_t i = ed_archive_find(archive, maker_check_text(L, 2));
    if (i < 0)
        lua_pushnil(L);
    else
        lua_pushinteger(L, i + 1);
    return 1;
}

static int dtype(lua_State *L)
{
    const ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    lua_pushstring(L, ed_archive_dtype(archive, place(L, archive, 2)));
    return 1;
}

static int shape(lua_State *L)
{
    const ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    convert_push_ints(L, ed_archive_shape(archive, place(L, archive, 2)));
    return 1;
}

static int bytes(lua_State *L)
{
    const ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    lua_pushinteger(L, ed_archive_bytes(archive, place(L, archive, 2)));
    return 1;
}

/* verify(i or name): true, or false and the reason. */
static int verify(lua_State *L)
{
    ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    bool fine = ed_archive_verify(archive, place(L, archive, 2));
    lua_pushboolean(L, fine);
    if (fine) return 1;
    bool pushed = handle_push_text(L, ed_error());
    ed_clear_error();
    return pushed ? 2 : handle_fail(L, "out of memory");
}

static int digest(lua_State *L)
{
    ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    int64_t i = place(L, archive, 2);
    luaL_checkstack(L, 4, NULL);
    binding b = binding_open(L);
    return binding_finish_text(L, &b, ed_archive_digest(archive, i));
}

static int metadata(lua_State *L)
{
    const ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    const char *value = ed_archive_metadata(archive, maker_check_text(L, 2));
    if (!value && ed_failed()) return handle_raise(L);
    lua_pushstring(L, value);
    return 1;
}

/* for name, tensor in pairs(archive): the archive at 1; the index is an upvalue. */
static int next_tensor(lua_State *L)
{
    ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(1));
    if (i >= ed_archive_count(archive)) return 0;
    lua_pushinteger(L, i + 1);
    lua_replace(L, lua_upvalueindex(1));
    lua_pushstring(L, ed_archive_name(archive, i));
    push_tensor(L, archive, i);
    return 2;
}

static int pairs(lua_State *L)
{
    handle_check(L, 1, HANDLE_ARCHIVE);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_tensor, 1);
    lua_pushvalue(L, 1);
    return 2;
}

static int count(lua_State *L)
{
    lua_pushinteger(L, ed_archive_count(handle_check(L, 1, HANDLE_ARCHIVE)));
    return 1;
}

/* A method precedes a tensor of its name; file:tensor(name) returns such tensors too. */
static int get_archive_tensor(lua_State *L)
{
    ed_archive *archive = handle_check(L, 1, HANDLE_ARCHIVE);
    if (objects_method(L)) return 1;
    return push_tensor(L, archive, place(L, archive, 2));
}

static const luaL_Reg methods[] = {
    {"tensor", tensor}, {"format", format}, {"names", names},       {"name", name},
    {"find", find},     {"dtype", dtype},   {"shape", shape},       {"bytes", bytes},
    {"verify", verify}, {"digest", digest}, {"metadata", metadata}, {NULL, NULL},
};

static const luaL_Reg metamethods[] = {{"__len", count}, {"__pairs", pairs}, {NULL, NULL}};

/* ---- Loading --------------------------------------------------------------------------------- */

/* load(path): a table of the file's tensors by name; then a table of the dtypes of those entries
 * that can't be tensors (a bundle's strings), by name. */
static int load(lua_State *L)
{
    const char *path = maker_check_text(L, 1);
    handle *file = handle_new(L, HANDLE_ARCHIVE);
    binding b = binding_open(L);
    handle_put(file, ed_archive_open(path));
    binding_close(&b);
    ed_archive *archive = file->object;
    if (!archive) return handle_raise(L);
    int64_t n = ed_archive_count(archive);
    lua_newtable(L);
    lua_newtable(L);
    for (int64_t i = 0; i < n; i++) {
        lua_pushstring(L, ed_archive_name(archive, i));
        handle *h = handle_new(L, HANDLE_TENSOR);
        b = binding_open(L);
        handle_put(h, ed_archive_tensor(archive, i));
        binding_close(&b);
        if (!h->object && ed_error_kind() != ED_UNIMPLEMENTED) return handle_raise(L);
        ed_clear_error();
        if (h->object) {
            lua_rawset(L, -4);
            continue;
        }
        lua_pop(L, 1);
        lua_pushstring(L, ed_archive_dtype(archive, i));
        lua_rawset(L, -3);
    }
    return 2;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int write_npy(lua_State *L)
{
    const char *path = maker_check_text(L, 1);
    luaL_checkany(L, 2);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    ed_tensor *t = convert_operand(L, 2, ED_DTYPE_NONE);
    bool fine = t && ed_write_npy(path, t);
    binding_close(&b);
    return fine ? 0 : handle_raise(L);
}

/* The tensors of the table at 2: name, tensor, name, tensor, ... */
static bool take_all(lua_State *L, const char *const *names, lua_Integer n, const void **all)
{
    const int values = lua_gettop(L) - 1;
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, values, i + 1);
        all[2 * i] = names[i];
        all[2 * i + 1] = convert_operand(L, -1, ED_DTYPE_NONE);
        lua_pop(L, 1);
        if (!all[2 * i + 1]) return false;
    }
    return true;
}

static const maker_field save_fields[] = {
    {"format", ED_FIELD_STRING, .offset = offsetof(ed_archive_options, format)}, {0}};

/* save(path, tensors, options): the format is that of the path's ending, or options.format. */
static int save(lua_State *L)
{
    const char *path = maker_check_text(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 3);
    lua_Integer n;
    const char **names = objects_entries(L, 2, "save", &n);
    const void **all = lua_newuserdatauv(L, (size_t)(2 * n + 1) * sizeof *all, 0);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    convert_room room = {.who = "save"};
    ed_archive_options options = {0};
    bool fine = maker_options(L, 3, save_fields, &options, &room) && take_all(L, names, n, all) &&
                ed_archive_write_with(path, (ed_named){all, 2 * n}, &options);
    binding_close(&b);
    return fine ? 0 : handle_raise(L);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

typedef struct tolerance {
    double rtol, atol;
} tolerance;

static const maker_field tolerance_fields[] = {
    {"rtol", ED_FIELD_FLOAT, .offset = offsetof(tolerance, rtol)},
    {"atol", ED_FIELD_FLOAT, .offset = offsetof(tolerance, atol)},
    {0}};

/* all_close(a, b, {rtol=, atol=}) or, of a path, golden_check: true, or false and why. */
static int compare_tensors(lua_State *L, const char *who, const char *path)
{
    lua_settop(L, 3);
    luaL_checkstack(L, 4 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    convert_room room = {.who = who};
    tolerance t = {1e-5, 1e-8};
    ed_close_report report = {0};
    ed_tensor *x = convert_operand(L, path ? 2 : 1, ED_DTYPE_NONE);
    ed_tensor *y = x && !path ? convert_operand(L, 2, ED_DTYPE_NONE) : x;
    bool close = y && maker_options(L, 3, tolerance_fields, &t, &room) &&
                 (path ? ed_golden_check(path, x, t.rtol, t.atol, &report)
                       : ed_all_close(x, y, t.rtol, t.atol, &report));
    const bool fine = !ed_failed();
    binding_close(&b);
    if (!fine) return handle_raise(L);
    lua_pushboolean(L, close);
    lua_pushstring(L, report.text);
    return close ? 1 : 2;
}

static int all_close(lua_State *L)
{
    luaL_checkany(L, 1);
    luaL_checkany(L, 2);
    return compare_tensors(L, "all_close", NULL);
}

static int golden_check(lua_State *L)
{
    const char *path = maker_check_text(L, 1);
    luaL_checkany(L, 2);
    return compare_tensors(L, "golden_check", path);
}

static const luaL_Reg functions[] = {
    {"all_close", all_close}, {"golden_check", golden_check},
    {"load", load},           {"write_npy", write_npy},
    {"save", save},           {NULL, NULL},
};

void files_open(lua_State *L)
{
    maker_open(L, makers);
    arguments_set(L, NULL, functions);
    objects_methods(L, HANDLE_ARCHIVE, methods, metamethods, get_archive_tensor);
}
