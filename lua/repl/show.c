#include "lua/objects.h"
#include "lua/repl/repl.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- Colours --------------------------------------------------------------------------------- */

const char *style_begin(FILE *to, style s)
{
    static const char *const codes[] = {[STYLE_ERROR] = "\033[31m", [STYLE_FAINT] = "\033[2m"};
    return plot_coloured(to) ? codes[s] : "";
}

const char *style_end(FILE *to)
{
    return plot_coloured(to) ? "\033[0m" : "";
}

/* ---- Keys in order --------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **show_sorted_keys(lua_State *L, int table, size_t *count)
{
    size_t n = 0, i = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) n += lua_type(L, -2) == LUA_TSTRING;
    const char **keys = lua_newuserdatauv(L, (n + 1) * sizeof *keys, 0);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && i < n) keys[i++] = lua_tostring(L, -2);
    qsort(keys, i, sizeof *keys, by_text);
    *count = i;
    return keys;
}

/* ---- Eddy's objects -------------------------------------------------------------------------- */

/* "float32 [2, 3]", of a tensor in a table. */
static void add_tensor(luaL_Buffer *to, const ed_tensor *t)
{
    if (ed_is_variable(t)) luaL_addstring(to, "variable ");
    luaL_addstring(to, ed_dtype_name(ed_dtype_of(t)));
    luaL_addstring(to, " [");
    ed_ints shape = ed_shape(t);
    for (int64_t i = 0; i < shape.count; i++) {
        lua_pushfstring(to->L, i ? ", %I" : "%I", (LUAI_UACINT)shape.values[i]);
        luaL_addvalue(to);
    }
    luaL_addchar(to, ']');
}

static void add_number(luaL_Buffer *to, const char *before, double n)
{
    char number[32];
    snprintf(number, sizeof number, "%.6g", n);
    luaL_addstring(to, before);
    luaL_addstring(to, number);
}

static void add_text(luaL_Buffer *to, const char *before, const char *s)
{
    luaL_addstring(to, before);
    luaL_addstring(to, s && *s ? s : "none");
}

static void add_optimizer(luaL_Buffer *to, const ed_optimizer *o)
{
    add_text(to, "optimizer ", ed_kind_of(o)->name);
    add_number(to, " (learning_rate ", ed_optimizer_learning_rate(o));
    add_number(to, ", iterations ", (double)ed_optimizer_iterations(o));
    luaL_addchar(to, ')');
}

static void add_dataset(luaL_Buffer *to, const ed_dataset *d)
{
    add_number(to, "dataset (rows ", (double)ed_dataset_rows(d));
    add_number(to, ", batches ", (double)ed_dataset_batches(d));
    luaL_addchar(to, ')');
}

static void add_metric(luaL_Buffer *to, const ed_metric *m)
{
    add_number(to, "metric (result ", ed_metric_result(m));
    luaL_addchar(to, ')');
}

static void add_archive(luaL_Buffer *to, const ed_archive *a)
{
    add_text(to, "archive (", ed_archive_format(a));
    add_number(to, ", tensors ", (double)ed_archive_count(a));
    luaL_addchar(to, ')');
}

static void add_manager(luaL_Buffer *to, const ed_checkpoint_manager *m)
{
    add_number(to, "checkpoint_manager (checkpoints ", (double)ed_manager_count(m));
    add_text(to, ", latest ", ed_manager_latest(m));
    luaL_addchar(to, ')');
}

static void add_generator(luaL_Buffer *to, const ed_generator *g)
{
    uint64_t state[3];
    char line[96];
    ed_generator_state(g, state);
    snprintf(line, sizeof line, "generator (state %llu, %llu, %llu)", (unsigned long long)state[0],
             (unsigned long long)state[1], (unsigned long long)state[2]);
    luaL_addstring(to, line);
}

static void *any_object(lua_State *L, int at, handle_kind *kind)
{
    void *object = NULL;
    for (int k = 0; k < HANDLE_KINDS && !object; k++)
        if ((object = handle_at(L, at, (handle_kind)k))) *kind = (handle_kind)k;
    return object;
}

/* Pushes a line that describes an object of Eddy's; false, and pushes nothing, for other values.
 * Layers have their own description. */
static bool push_object(lua_State *L, int at)
{
    luaL_Buffer to;
    handle_kind kind = HANDLE_KINDS;
    const char *name = handle_name(L, at);
    if (!name || handle_at(L, at, HANDLE_LAYER)) return false;
    const void *object = any_object(L, at, &kind);
    luaL_buffinit(L, &to);
    switch (kind) {
    case HANDLE_TENSOR: add_tensor(&to, object); break;
    case HANDLE_OPTIMIZER: add_optimizer(&to, object); break;
    case HANDLE_DATASET: add_dataset(&to, object); break;
    case HANDLE_METRIC: add_metric(&to, object); break;
    case HANDLE_GENERATOR: add_generator(&to, object); break;
    case HANDLE_ARCHIVE: add_archive(&to, object); break;
    case HANDLE_MANAGER: add_manager(&to, object); break;
    default:
        if (!object) luaL_addstring(&to, "a closed ");
        luaL_addstring(&to, name);
    }
    luaL_pushresult(&to);
    return true;
}

/* ---- Strings --------------------------------------------------------------------------------- */

enum { MOST_ITEMS = 60, LONGEST_TEXT = 60, LINE = 96, MOST_INNER = 16, LONGEST_INNER = 20 };

/* A string as in a program, at most `most` bytes of it. */
static void print_quoted(const char *s, size_t size, size_t most)
{
    putchar('"');
    for (size_t i = 0; i < size && i < most; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c < 32 || c == 127)
            printf("\\%03d", c);
        else
            putchar(c);
    }
    fputs(size > most ? "\"..." : "\"", stdout);
}

/* Whether a string has several lines of printable text. */
static bool has_lines(const char *s, size_t size)
{
    bool any = false;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)s[i];
        if ((c < 32 && c != '\n' && c != '\t') || c == 127) return false;
        any |= c == '\n' && i + 1 < size;
    }
    return any;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static int told(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    return 1;
}

/* Pushes the first line of the value's own __tostring; if that fails, the table is still shown
 * without it. */
static void push_told(lua_State *L, int at)
{
    lua_pushcfunction(L, told);
    lua_pushvalue(L, at);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        lua_pop(L, 1);
        lua_pushfstring(L, "%s: %p", luaL_typename(L, at), lua_topointer(L, at));
    }
    const char *said = lua_tostring(L, -1);
    const size_t size = strcspn(said, "\n");
    if (!said[size]) return;
    lua_pushlstring(L, said, size);
    lua_pushliteral(L, "...");
    lua_concat(L, 2);
    lua_remove(L, -2);
}

static bool tells_itself(lua_State *L, int at)
{
    const bool tells = luaL_getmetafield(L, at, "__tostring") != LUA_TNIL;
    if (tells) lua_pop(L, 1);
    return tells;
}

static bool is_plain_table(lua_State *L, int at)
{
    return lua_type(L, at) == LUA_TTABLE && !tells_itself(L, at);
}

/* A string in a nested table; long ones are truncated. */
static void push_quoted(lua_State *L, int at)
{
    size_t size;
    const char *s = lua_tolstring(L, at, &size);
    bool plain = size <= LONGEST_INNER;
    for (size_t i = 0; i < size && plain; i++) plain = (unsigned char)s[i] >= 32 && s[i] != '"';
    lua_pushfstring(L, plain ? "\"%s\"" : "\"...\"", s);
}

/* Pushes a nested table if it is short: a list of few values, without tables that have elements. */
static void push_inner_table(lua_State *L, int at)
{
    const lua_Integer length = (lua_Integer)lua_rawlen(L, at);
    lua_Integer count = 0;
    for (lua_pushnil(L); count <= length && lua_next(L, at); lua_pop(L, 1)) count++;
    if (count > length) lua_pop(L, 1);
    const bool list = count == length && length <= MOST_INNER;
    lua_pushstring(L, list ? "{" : count ? "{...}" : "{}");
    for (lua_Integer i = 1; list && i <= length; i++) {
        lua_pushstring(L, i > 1 ? ", " : "");
        lua_rawgeti(L, at, i);
        if (is_plain_table(L, -1))
            lua_pushstring(L, lua_rawlen(L, -1) ? "{...}" : "{}");
        else if (lua_type(L, -1) == LUA_TSTRING)
            push_quoted(L, -1);
        else if (!push_object(L, lua_gettop(L)))
            push_told(L, lua_gettop(L));
        lua_remove(L, -2);
        lua_concat(L, 3);
    }
    if (!list) return;
    lua_pushliteral(L, "}");
    lua_concat(L, 2);
    if (lua_rawlen(L, -1) <= LONGEST_TEXT) return;
    lua_pop(L, 1);
    lua_pushliteral(L, "{...}");
}

/* Pushes a value in a table as one short string. */
static void push_brief(lua_State *L, int at)
{
    at = lua_absindex(L, at);
    luaL_checkstack(L, 12, NULL);
    if (is_plain_table(L, at))
        push_inner_table(L, at);
    else if (!push_object(L, at))
        push_told(L, at);
}

/* One item of a table, after its key, on this line or the next. */
static void print_item(lua_State *L, const char *key, int *column)
{
    size_t size;
    bool quoted = lua_type(L, -1) == LUA_TSTRING;
    if (quoted)
        lua_pushvalue(L, -1);
    else
        push_brief(L, -1);
    const char *value = lua_tolstring(L, -1, &size);
    size_t shown = quoted && size > LONGEST_TEXT ? LONGEST_TEXT + 3 : size;
    int width = (int)(strlen(key) + (*key ? 3 : 0) + shown + (quoted ? 2 : 0));
    bool first = *column == 1;
    if (!first) fputs(*column + width > LINE ? ",\n " : ", ", stdout);
    *column = first ? 1 + width : *column + width > LINE ? 1 + width : *column + 2 + width;
    if (*key) printf("%s = ", key);
    if (quoted)
        print_quoted(value, size, LONGEST_TEXT);
    else
        fwrite(value, 1, size, stdout);
    lua_pop(L, 1);
}

static bool is_in_list(lua_State *L, int key, lua_Integer length)
{
    return lua_isinteger(L, key) && lua_tointeger(L, key) >= 1 && lua_tointeger(L, key) <= length;
}

/* Keys that are neither in the list part nor strings. */
static void print_others(lua_State *L, int at, lua_Integer length, int *column, int *shown)
{
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING || is_in_list(L, -2, length)) continue;
        if ((*shown)++ >= MOST_ITEMS) continue;
        push_brief(L, -2);
        lua_pushfstring(L, "[%s]", lua_tostring(L, -1));
        lua_pushvalue(L, -3);
        print_item(L, lua_tostring(L, -2), column);
        lua_pop(L, 3);
    }
}

/* The list part, then string keys in order, then the other keys; nested tables are not expanded. */
static void print_table(lua_State *L, int at)
{
    int column = 1, shown = 0;
    size_t count;
    lua_Integer length = (lua_Integer)lua_rawlen(L, at);
    putchar('{');
    for (lua_Integer i = 1; i <= length && shown < MOST_ITEMS; i++, shown++) {
        lua_rawgeti(L, at, i);
        print_item(L, "", &column);
        lua_pop(L, 1);
    }
    if (shown < length) shown = (int)(length < INT32_MAX ? length : INT32_MAX);
    const char **keys = show_sorted_keys(L, at, &count);
    for (size_t i = 0; i < count; i++) {
        if (shown++ >= MOST_ITEMS) continue;
        lua_pushstring(L, keys[i]);
        lua_rawget(L, at);
        print_item(L, keys[i], &column);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    print_others(L, at, length, &column, &shown);
    if (shown > MOST_ITEMS) printf(", ... %d in all", shown);
    fputs("}\n", stdout);
}

/* A string of several lines, a summary for instance, unchanged. */
static void print_text(const char *s, size_t size)
{
    const bool lines = has_lines(s, size);
    if (lines)
        fwrite(s, 1, size, stdout);
    else
        print_quoted(s, size, SIZE_MAX);
    if (!lines || s[size - 1] != '\n') putchar('\n');
}

/* ---- Objects --------------------------------------------------------------------------------- */

/* Pushes the tensor as a string that fits the terminal, if the output is one. */
static void push_tensor(lua_State *L, const ed_tensor *t)
{
    struct winsize size = {0};
    if (isatty(STDOUT_FILENO)) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    binding b = binding_open(L);
    /* two rows are for this prompt and the next */
    const char *s = size.ws_row > 2 && size.ws_col
                        ? print_fitting(L, t, size.ws_col, size.ws_row - 2)
                        : print_string(L, t);
    binding_finish_text(L, &b, s);
}

/* Pushes the signature of a function of the module, and how to get help; false for other
 * functions. */
static bool push_function(lua_State *L, int at)
{
    if (lua_type(L, at) != LUA_TFUNCTION) return false;
    repl_push_field(L, "signature");
    lua_pushvalue(L, at);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK || lua_type(L, -1) != LUA_TSTRING)
        return lua_pop(L, 1), false;
    const char *s = lua_tostring(L, -1);
    if (!strncmp(s, "ed.help(", 8)) {
        lua_pushliteral(L, "help(x) or ?x shows help on a function, a name or an object, "
                           "help() a list of all");
    } else {
        lua_pushlstring(L, s, strcspn(s, "({"));
        lua_pushfstring(L, "function %s; ?%s shows help", s, lua_tostring(L, -1));
        lua_remove(L, -2);
    }
    lua_remove(L, -2);
    return true;
}

void show_value(lua_State *L, int at)
{
    size_t size;
    handle_kind kind;
    at = lua_absindex(L, at);
    luaL_checkstack(L, 24, NULL);
    if (lua_type(L, at) == LUA_TSTRING) {
        const char *s = lua_tolstring(L, at, &size);
        print_text(s, size);
        return;
    }
    const ed_tensor *tensor = handle_at(L, at, HANDLE_TENSOR);
    const ed_layer *layer = handle_at(L, at, HANDLE_LAYER);
    const bool tells = tells_itself(L, at) && (!handle_name(L, at) || any_object(L, at, &kind));
    if (lua_type(L, at) == LUA_TTABLE && !tells) {
        print_table(L, at);
        return;
    }
    if (tensor)
        push_tensor(L, tensor);
    else if (layer)
        layers_push_tree(L, layer);
    else if (tells || (!push_object(L, at) && !push_function(L, at)))
        luaL_tolstring(L, at, NULL);
    const char *s = lua_tolstring(L, -1, &size);
    fwrite(s, 1, size, stdout);
    putchar('\n');
    lua_pop(L, 1);
}

const char *show_bytes(int64_t bytes, char (*room)[32])
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    double n = (double)bytes;
    int unit = 0;
    while (n >= 1000 && unit < 4) {
        n /= 1000;
        unit++;
    }
    snprintf(*room, sizeof *room, unit ? "%.3g %s" : "%.0f %s", n, units[unit]);
    return *room;
}
