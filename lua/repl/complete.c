#include "lua/objects.h"
#include "lua/repl/repl.h"
#include <ctype.h>
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Completions, by the position of the cursor:
 *
 *     "data/mni       names of files, dtypes     :ti        commands
 *     ed.con  x:su    fields and methods         ?con       names with help
 *     x:sum{ax        options of the function    loca       globals and keywords of Lua
 *
 * No code of the program is run: fields are looked up without metamethods.
 */

enum { DEEPEST = 64 };

/* The quotes and brackets around the cursor. */
typedef struct place {
    const char *quote;         /* the one that is open, or NULL */
    const char *open[DEEPEST]; /* open brackets */
    int depth;
    bool comment;
} place;

static const char *skip_text(const char *s)
{
    char quote = *s++;
    for (; *s && *s != quote; s++)
        if (*s == '\\' && s[1]) s++;
    return s;
}

static place look(const char *text)
{
    place p = {0};
    for (const char *s = text; *s; s++) {
        if (*s == '"' || *s == '\'') {
            const char *end = skip_text(s);
            if (!*end) return p.quote = s, p;
            s = end;
        } else if (*s == '-' && s[1] == '-') {
            return p.comment = true, p;
        } else if (strchr("({[", *s)) {
            if (p.depth < DEEPEST) p.open[p.depth++] = s;
        } else if (strchr(")}]", *s) && p.depth) {
            p.depth--;
        }
    }
    return p;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *word_before(const char *text, const char *end)
{
    while (end > text && is_word(end[-1])) end--;
    return end;
}

static const char *blanks_before(const char *text, const char *end)
{
    while (end > text && (end[-1] == ' ' || end[-1] == '\t')) end--;
    return end;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* The names found so far: keys of a table on the stack. */
typedef struct found {
    lua_State *L;
    int names;
    const char *word; /* all begin with it */
} found;

static void add(const found *f, const char *name)
{
    if (strncmp(name, f->word, strlen(f->word)) != 0) return;
    lua_pushboolean(f->L, true);
    lua_setfield(f->L, f->names, name);
}

static bool is_name(const char *s)
{
    bool begins = *s && !isdigit((unsigned char)*s);
    while (is_word(*s)) s++;
    return begins && !*s;
}

/* Adds the string keys of the table at the top; those that begin with an underscore only if the
 * word does. */
static void add_keys(const found *f, bool functions)
{
    lua_State *L = f->L;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        bool fits = lua_type(L, -2) == LUA_TSTRING && (!functions || lua_isfunction(L, -1));
        const char *name = fits ? lua_tostring(L, -2) : "";
        if (is_name(name) && (*name != '_' || *f->word == '_')) add(f, name);
        lua_pop(L, 1);
    }
}

/* Adds the fields and methods of Eddy's object, or of the kind of that name, at the top; pops
 * it. */
static void add_object(const found *f, bool functions)
{
    lua_State *L = f->L;
    repl_push_field(L, "names");
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    if (lua_istable(L, -1)) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            if (!functions || !strcmp(lua_tostring(L, -1), "method")) add(f, lua_tostring(L, -2));
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

enum { LONGEST_CHAIN = 10 };

/* Replaces the value at the top by the table in its metatable's __index; false if there is none. */
static bool to_parent(lua_State *L)
{
    if (luaL_getmetafield(L, -1, "__index") == LUA_TNIL) return false;
    lua_remove(L, -2);
    return lua_istable(L, -1);
}

/* Replaces the value at the top by its field; false if it has none. */
static bool to_field(lua_State *L, const char *name, size_t length)
{
    for (int i = 0; i < LONGEST_CHAIN && (lua_istable(L, -1) || i == 0); i++) {
        if (lua_istable(L, -1)) {
            lua_pushlstring(L, name, length);
            lua_rawget(L, -2);
            if (!lua_isnil(L, -1)) return lua_remove(L, -2), true;
            lua_pop(L, 1);
        }
        if (!to_parent(L)) return false;
    }
    return false;
}

/* Pushes the value of "a.b.c", which ends at `end`; false, with a value pushed, if there is
 * none, or if it is another expression. */
static bool push_value(lua_State *L, const char *text, const char *end)
{
    const char *start = end;
    for (;;) {
        const char *word = word_before(text, start);
        if (word == start) return lua_pushnil(L), false;
        start = word;
        if (start == text || start[-1] != '.') break;
        start--;
    }
    if (start > text && strchr(":)]\"'", start[-1])) return lua_pushnil(L), false;
    lua_pushglobaltable(L);
    while (start < end) {
        size_t length = strcspn(start, ".:");
        if (length > (size_t)(end - start)) length = (size_t)(end - start);
        if (!to_field(L, start, length)) return false;
        start += length + 1;
    }
    return true;
}

/* Whether the value before the ':' at `mark` is ("a string"). */
static bool is_quoted(const char *text, const char *mark)
{
    const char *end = mark > text && mark[-1] == ')' ? blanks_before(text, mark - 1) : text;
    if (end <= text || !strchr("\"'", end[-1])) return false;
    const char quote = end[-1];
    for (end--; end > text && end[-1] != quote;) end--;
    if (end == text) return false;
    end = blanks_before(text, end - 1);
    return end > text && end[-1] == '(';
}

/* The fields of the value before the '.' or ':' at `mark`. The result of a call or an index is
 * not known; it is probably a tensor. */
static void add_fields(const found *f, const char *text, const char *mark)
{
    lua_State *L = f->L;
    bool functions = *mark == ':';
    if (is_quoted(text, mark)) {
        lua_pushliteral(L, "");
    } else if (mark > text && strchr(")]}", mark[-1])) {
        lua_pushliteral(L, "tensor");
        add_object(f, functions);
        return;
    } else if (!push_value(L, text, mark)) {
        return;
    }
    if (lua_isuserdata(L, -1)) {
        lua_pushvalue(L, -1);
        add_object(f, functions);
    }
    for (int i = 0; i < LONGEST_CHAIN; i++) {
        if (lua_istable(L, -1)) add_keys(f, functions);
        if (!to_parent(L)) break;
    }
}

/* ---- Options --------------------------------------------------------------------------------- */

/* The end of the function's name before the open list of arguments at a depth: "x:sum" of
 * "x:sum{"; NULL if the bracket does not open such a list. */
static const char *callee_at(const char *text, const place *p, int depth)
{
    if (depth < 1 || *p->open[depth - 1] == '[') return NULL;
    const char *end = blanks_before(text, p->open[depth - 1]);
    return end > text && is_word(end[-1]) ? end : NULL;
}

/* Pushes the function or object that is called, or its name: "tensor:sum" if the object is
 * known. */
static void push_callee(lua_State *L, const char *text, const char *end)
{
    if (push_value(L, text, end) && (lua_isfunction(L, -1) || lua_isuserdata(L, -1))) return;
    lua_pop(L, 1);
    const char *name = word_before(text, end), *kind = NULL;
    const bool method = name > text && name[-1] == ':';
    if (method) {
        push_value(L, text, name - 1);
        kind = handle_name(L, -1);
        lua_pop(L, 1);
    }
    if (kind) lua_pushfstring(L, "%s:", kind);
    lua_pushlstring(L, name, (size_t)(end - name));
    if (kind) lua_concat(L, 2);
}

/* The options of the function whose list of arguments is open. */
static void add_options(const found *f, const char *text, const place *p, const char *before)
{
    lua_State *L = f->L;
    const char last = before > text ? before[-1] : 0;
    if (!p->depth || *p->open[p->depth - 1] != '{' || (last != '{' && last != ',')) return;
    const char *inner = callee_at(text, p, p->depth), *end = inner;
    const char *list = blanks_before(text, p->open[p->depth - 1]);
    if (!end && list > text && list[-1] == ',') end = callee_at(text, p, p->depth - 1);
    if (!end) return;
    help_push_options(L);
    push_callee(L, text, end);
    lua_pushboolean(L, inner != NULL);
    lua_call(L, 2, 1);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TSTRING; i++) {
        add(f, lua_pushfstring(L, "%s = ", lua_tostring(L, -1)));
        lua_pop(L, 2);
    }
    lua_pop(L, 2);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static int close_folder(lua_State *L)
{
    DIR **folder = lua_touserdata(L, 1);
    if (*folder) closedir(*folder);
    *folder = NULL;
    return 0;
}

/* Pushes an open folder, which is closed when it is collected, also after an error. */
static DIR **push_folder(lua_State *L, const char *path)
{
    DIR **folder = lua_newuserdatauv(L, sizeof *folder, 0);
    *folder = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_folder);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    *folder = opendir(path);
    return folder;
}

static void add_files(const found *f)
{
    lua_State *L = f->L;
    struct stat info;
    const char *slash = strrchr(f->word, '/');
    size_t length = slash ? (size_t)(slash - f->word) + 1 : 0;
    const char *path = lua_pushlstring(L, f->word, length);
    DIR **folder = push_folder(L, length ? path : ".");
    for (struct dirent *entry; *folder && (entry = readdir(*folder));) {
        if (*entry->d_name == '.' && f->word[length] != '.') continue;
        const char *name = lua_pushfstring(L, "%s%s", path, entry->d_name);
        if (!stat(name, &info) && S_ISDIR(info.st_mode)) name = lua_pushfstring(L, "%s/", name);
        add(f, name);
        lua_settop(L, f->names + 2);
    }
    if (*folder) closedir(*folder);
    *folder = NULL;
}

/* ---- Strings --------------------------------------------------------------------------------- */

static void add_dtypes(const found *f)
{
    for (int d = ED_DTYPE_NONE + 1; d < ED_DTYPE_COUNT; d++) add(f, ed_dtype_name((ed_dtype)d));
}

static void add_activations(const found *f)
{
    help_push_activations(f->L);
    for (lua_Integer i = 1; lua_rawgeti(f->L, -1, i) == LUA_TSTRING; i++) {
        add(f, lua_tostring(f->L, -1));
        lua_pop(f->L, 1);
    }
    lua_pop(f->L, 2);
}

static bool is_one_of(const char *name, size_t length, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == length && !strncmp(*names, name, length)) return true;
    return false;
}

/* Inside quotes: values of the option before '=' or of the function, or else names of files. */
static void add_texts(const found *f, const char *text, const place *p)
{
    static const char *const dtypes[] = {"dtype", "cast", NULL};
    static const char *const activations[] = {"activation", "activation_layer", "activate", NULL};
    const char *end = blanks_before(text, p->quote);
    const bool option = end > text && end[-1] == '=';
    if (option)
        end = blanks_before(text, end - 1);
    else if (callee_at(text, p, p->depth))
        end = callee_at(text, p, p->depth);
    const char *name = word_before(text, end);
    const size_t length = (size_t)(end - name);
    if (is_one_of(name, length, dtypes))
        add_dtypes(f);
    else if (is_one_of(name, length, activations))
        add_activations(f);
    else
        add_files(f);
}

/* ---- All completions ------------------------------------------------------------------------- */

static const char *const words_of_lua[] = {
    "and",      "break",  "do",   "else", "elseif", "end",   "false", "for",
    "function", "goto",   "if",   "in",   "local",  "nil",   "not",   "or",
    "repeat",   "return", "then", "true", "until",  "while",
};

static void add_globals(const found *f)
{
    for (size_t i = 0; *f->word && i < sizeof words_of_lua / sizeof *words_of_lua; i++)
        add(f, words_of_lua[i]);
    lua_pushglobaltable(f->L);
    add_keys(f, false);
    lua_pop(f->L, 1);
}

static bool has_any(const found *f)
{
    lua_pushnil(f->L);
    bool any = lua_next(f->L, f->names);
    if (any) lua_pop(f->L, 2);
    return any;
}

static void add_words(const found *f, const char *text, const place *p)
{
    const char *before = blanks_before(text, text + strlen(text) - strlen(f->word));
    if (*text == '?') {
        repl_push_module(f->L);
        add_keys(f, false);
        return;
    }
    add_options(f, text, p, before);
    if (!has_any(f)) add_globals(f);
}

size_t complete(lua_State *L, const char *text)
{
    place p = look(text);
    const char *end = text + strlen(text);
    found f = {.L = L, .word = p.quote ? p.quote + 1 : word_before(text, end)};
    const char *mark = f.word > text && !p.quote ? f.word - 1 : "";
    lua_newtable(L);
    f.names = lua_gettop(L);
    luaL_checkstack(L, 20, NULL);
    if (p.quote) {
        add_texts(&f, text, &p);
    } else if (*text == ':' && mark == text) {
        f.word = text;
        for (size_t i = 0; command_name(i); i++) add(&f, command_name(i));
    } else if (*mark == '.' || *mark == ':') {
        add_fields(&f, text, mark);
    } else if (!p.comment) {
        add_words(&f, text, &p);
    }
    lua_settop(L, f.names);
    return strlen(f.word);
}
