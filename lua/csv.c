#include "data/data.h"
#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/objects.h"
#include <string.h>

/*
 * Tables of numbers and words from CSV files in Lua, and words as integers.
 *
 *     local x, names = ed.read_csv("people.csv", {columns = {"age", "income"}, missing = 0})
 *     local jobs = ed.read_csv_words("people.csv", {columns = "job"})
 *     local places = ed.string_lookup(jobs, ed.vocabulary(jobs))
 */

typedef struct csv {
    ed_read_csv_options options;
} csv;

/* The names in the table at `at` as one line of CSV, in the scope; NULL with an error. */
static const char *joined_names(lua_State *L, int at, const char *who)
{
    const lua_Integer n = (lua_Integer)lua_rawlen(L, at);
    size_t used = 0, room = 1;
    char *line = NULL;
    for (int round = 0; round < 2; round++) {
        for (lua_Integer i = 1; i <= n; i++) {
            size_t length = 0;
            const bool is_text = lua_rawgeti(L, at, i) == LUA_TSTRING;
            const char *name = is_text ? lua_tolstring(L, -1, &length) : NULL;
            lua_pop(L, 1); /* the table keeps it */
            if (!name)
                return ed_fail(ED_INVALID_ARGUMENT, "%s: columns[%lld] is no string", who,
                               (long long)i);
            room += 2 * length + 3;
            if (!line) continue;
            if (used) line[used++] = ',';
            line[used++] = '"';
            for (size_t k = 0; k < length; k++) {
                if (name[k] == '"') line[used++] = '"';
                line[used++] = name[k];
            }
            line[used++] = '"';
        }
        if (!line && !(line = ed_scope_alloc(room))) return NULL;
    }
    line[used] = 0;
    return line;
}

static bool read_columns(lua_State *L, int at, const maker_field *field, void *to,
                         convert_room *room)
{
    (void)field;
    const char **columns = to;
    if (lua_type(L, at) == LUA_TTABLE)
        *columns = joined_names(L, at, room->who);
    else if (lua_type(L, at) == LUA_TSTRING)
        *columns = lua_tostring(L, at);
    else
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: columns is %s; a table of names, or one name, is expected", room->who,
                       convert_kind(L, at).s);
    return *columns != NULL;
}

static const maker_field fields[] = {
    {"columns", .offset = offsetof(csv, options.columns), .read = read_columns},
    ED_READ_CSV_FORMAT(MAKER_OPTION, csv){0},
};

/* Every `step`-th of an array of strings. */
typedef struct texts {
    const char *const *values;
    int64_t count, step;
} texts;

static int push_texts(lua_State *L)
{
    const texts *t = lua_touserdata(L, 1);
    lua_newtable(L);
    for (int64_t i = 0; i < t->count; i++) {
        lua_pushstring(L, t->values[i * t->step]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* Pushes a table of them; false with an error. */
static bool add_texts(lua_State *L, texts t)
{
    lua_pushcfunction(L, push_texts);
    lua_pushlightuserdata(L, &t);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK) return true;
    lua_pop(L, 1);
    return ed_fail(ED_OUT_OF_MEMORY, "Lua has no memory for a table of strings");
}

/* Columns chosen by options; 0 with an error. */
static int64_t count_columns(const char *const *names)
{
    int64_t n = 0;
    while (names && names[n]) n++;
    return n;
}

/* read_csv(path, {columns = , delimiter = , header = , missing = , dtype = }): [rows, columns], and
 * the columns' names. */
static int read_csv(lua_State *L)
{
    const char *path = maker_check_text(L, 1);
    csv c = {ED_COMPLETE(ED_READ_CSV_OPTIONS, ed_read_csv_options)};
    lua_settop(L, 2);
    luaL_checkstack(L, 2 * ED_MAX_RANK, NULL);
    handle *made = handle_new(L, HANDLE_TENSOR);
    binding b = binding_open(L);
    convert_room room = {.who = "read_csv"};
    const bool fine = maker_options(L, 2, fields, &c, &room);
    ed_tensor *t = fine ? ed_read_csv_with(path, &c.options) : NULL;
    const char *const *names = t ? ed_read_csv_names_with(path, &c.options) : NULL;
    const bool named = names && add_texts(L, (texts){names, count_columns(names), 1});
    if (named) handle_put(made, t);
    binding_close(&b);
    return named ? 2 : handle_raise(L);
}

/* The table for each column; how many, 0 with an error. */
static int add_columns(lua_State *L, const char *path, const ed_read_csv_options *o)
{
    const ed_strings words = ed_read_csv_words_with(path, o);
    const int64_t n = words.values ? count_columns(ed_read_csv_names_with(path, o)) : 0;
    if (n && (n > INT16_MAX || !lua_checkstack(L, (int)n + 8)))
        return ed_fail(ED_INVALID_ARGUMENT, "read_csv_words: too many columns; choose some"), 0;
    for (int64_t i = 0; i < n; i++)
        if (!add_texts(L, (texts){words.values + i, words.count / n, n})) return 0;
    return (int)n;
}

/* read_csv_words(path, {columns = , delimiter = , header = }): a table of strings for each. */
static int read_csv_words(lua_State *L)
{
    const char *path = maker_check_text(L, 1);
    csv c = {ED_COMPLETE(ED_READ_CSV_OPTIONS, ed_read_csv_options)};
    lua_settop(L, 2);
    luaL_checkstack(L, 2 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    convert_room room = {.who = "read_csv_words"};
    const int n = maker_options(L, 2, fields, &c, &room) ? add_columns(L, path, &c.options) : 0;
    binding_close(&b);
    return n ? n : handle_raise(L);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Closes the binding and returns a table of the strings. */
static int finish_texts(lua_State *L, binding *b, ed_strings s)
{
    const bool pushed = s.values && add_texts(L, (texts){s.values, s.count, 1});
    binding_close(b);
    return pushed ? 1 : handle_raise(L);
}

typedef struct vocabulary {
    ed_vocabulary_options options;
} vocabulary;

static const maker_field vocabulary_fields[] = {ED_VOCABULARY_OPTIONS(MAKER_OPTION, vocabulary){0}};
static const maker_field words_field = {"words"};

/* vocabulary(words, {max_tokens = }) */
static int vocabulary_of(lua_State *L)
{
    vocabulary v = {ED_COMPLETE(ED_VOCABULARY_OPTIONS, ed_vocabulary_options)};
    lua_settop(L, 2);
    luaL_checkstack(L, 2 * ED_MAX_RANK, NULL);
    binding b = binding_open(L);
    convert_room room = {.who = "vocabulary"};
    ed_strings words, known = {0};
    if (maker_texts(L, 1, &words_field, &words, &room) &&
        maker_options(L, 2, vocabulary_fields, &v, &room))
        known = ed_vocabulary_with(words, &v.options);
    return finish_texts(L, &b, known);
}

/* split_words(text) */
static int split_words(lua_State *L)
{
    const char *text = maker_check_text(L, 1);
    luaL_checkstack(L, 8, NULL);
    binding b = binding_open(L);
    return finish_texts(L, &b, ed_split_words(text));
}

typedef struct lookup {
    ed_strings words, vocabulary;
    ed_string_lookup_options options;
} lookup;

static void *string_lookup(const void *arguments)
{
    const lookup *l = arguments;
    return ed_string_lookup_with(l->words, l->vocabulary, &l->options);
}

static const lookup lookup_defaults = {
    .options = ED_COMPLETE(ED_STRING_LOOKUP_OPTIONS, ed_string_lookup_options)};
static const maker_field lookup_fields[] = {
    {"words", .offset = offsetof(lookup, words), .read = maker_texts},
    {"vocabulary", .offset = offsetof(lookup, vocabulary), .read = maker_texts},
    ED_STRING_LOOKUP_OPTIONS(MAKER_OPTION, lookup){0},
};
static const maker makers[] = {
    {"string_lookup", HANDLE_TENSOR, 2, 2, lookup_fields, sizeof(lookup), &lookup_defaults,
     string_lookup},
    {0},
};

void csv_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"read_csv", read_csv},
                                         {"read_csv_words", read_csv_words},
                                         {"vocabulary", vocabulary_of},
                                         {"split_words", split_words},
                                         {NULL, NULL}};
    arguments_set(L, NULL, functions);
    maker_open(L, makers);
}
