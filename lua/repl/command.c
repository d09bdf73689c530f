#include "lua/repl/repl.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Input that begins with a colon or a question mark is a command of the prompt. ("::label::" is
 * Lua.) */

/* ---- :time ----------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void print_seconds(double s)
{
    if (s < 1e-3)
        printf("%.3g us", s * 1e6);
    else if (s < 1)
        printf("%.3g ms", s * 1e3);
    else
        printf("%.3f s", s);
}

static void time_command(lua_State *L, const char *rest)
{
    char held[32], peak[32];
    if (!*rest) return (void)puts("  :time x   x is an expression or a statement");
    if (prompt_enter(L, rest) != LUA_OK) return prompt_complain(L);
    ed_memory before = ed_memory_stats();
    ed_memory_reset_peak();
    double start = now();
    prompt_call(L);
    double took = now() - start;
    ed_memory after = ed_memory_stats();
    print_seconds(took);
    printf("; memory: %s more, at most %s more\n",
           show_bytes(after.live_bytes - before.live_bytes, &held),
           show_bytes(after.peak_bytes - before.live_bytes, &peak));
}

/* Compiled as a function that ed.timeit calls. */
static void timeit_command(lua_State *L, const char *rest)
{
    if (!*rest) return (void)puts("  :timeit x   x is an expression or a statement");
    repl_push_field(L, "timeit");
    if (prompt_enter(L, rest) != LUA_OK) return prompt_complain(L);
    if (repl_call(L, 1, 1, true) != LUA_OK) return prompt_complain(L);
    show_value(L, -1);
}

/* ---- :mem, :who ------------------------------------------------------------------------------ */

/* ":mem": the lines that created the objects with the most bytes. */
typedef struct share {
    const char *place; /* in the table of lines; NULL: no line */
    int64_t tensors, bytes;
} share;

static int by_bytes(const void *a, const void *b)
{
    const share *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->place, y->place);
}

static int64_t integer_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    const int64_t n = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return n;
}

/* Pushes the memory of the shares, of the lines at the top of the stack. */
static share *push_shares(lua_State *L, size_t count)
{
    const int lines = lua_gettop(L);
    share *all = lua_newuserdatauv(L, (count + 1) * sizeof *all, 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, lines, (lua_Integer)i + 1);
        lua_getfield(L, -1, "place");
        const char *place = lua_tostring(L, -1);
        lua_pop(L, 1);
        all[i] = (share){place, integer_field(L, "tensors"), integer_field(L, "bytes")};
        lua_pop(L, 1);
    }
    qsort(all, count, sizeof *all, by_bytes);
    return all;
}

/* After an entry, prints as much of the program's line as fits the terminal. */
static void print_line_at(lua_State *L, const char *place, int column)
{
    if (!place || !prompt_push_line(L, place)) return;
    const char *line = lua_tostring(L, -1);
    line += strspn(line, " \t");
    int room = line_width() - column - 3;
    if (room > 0 && (size_t)room < strlen(line))
        while (room && (line[room] & 0xc0) == 0x80) room--; /* not within a character */
    if (room > 0)
        printf("  %s%.*s%s", style_begin(stdout, STYLE_FAINT), room, line, style_end(stdout));
    lua_pop(L, 1);
}

static void print_share(lua_State *L, const share *s, const char *told)
{
    char bytes[32], tensors[32] = "";
    if (s->tensors) snprintf(tensors, sizeof tensors, "%6lld tensors", (long long)s->tensors);
    const int column = printf("%-14s  %-9s  %s", tensors, show_bytes(s->bytes, &bytes), told);
    print_line_at(L, s->place, column);
    putchar('\n');
}

/* The lines are at the top of the stack. */
static int print_shares(lua_State *L)
{
    enum { MOST = 10 };
    const size_t count = lua_rawlen(L, 1);
    const ed_memory m = ed_memory_stats();
    const share *all = push_shares(L, count);
    share rest = {NULL, m.live_tensors, m.live_bytes}, others = {0};
    for (size_t i = 0; i < count; i++) {
        rest.tensors -= all[i].tensors;
        rest.bytes -= all[i].bytes;
        if (i < MOST) {
            print_share(L, &all[i], all[i].place);
        } else {
            others.tensors += all[i].tensors;
            others.bytes += all[i].bytes;
        }
    }
    if (count > MOST) print_share(L, &others, "other lines");
    if (rest.tensors < 0) rest.tensors = 0;
    if (rest.bytes < 0) rest.bytes = 0;
    if (rest.tensors || rest.bytes)
        print_share(L, &rest, "no line: layers, optimizers, tapes and internal data");
    return 0;
}

static void memory_command(lua_State *L, const char *rest)
{
    (void)rest;
    char live[32], cached[32], peak[32], lua[32];
    lua_gc(L, LUA_GCCOLLECT); /* garbage does not count */
    ed_memory m = ed_memory_stats();
    int64_t scripts = (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + lua_gc(L, LUA_GCCOUNTB);
    printf("%lld tensors in %s, peak %s; cached %s; Lua %s\n", (long long)m.live_tensors,
           show_bytes(m.live_bytes, &live), show_bytes(m.peak_bytes, &peak),
           show_bytes(m.cached_bytes, &cached), show_bytes(scripts, &lua));
    lua_pushcfunction(L, print_shares);
    repl_push_field(L, "memory_lines");
    if (repl_call(L, 0, 1, true) != LUA_OK || repl_call(L, 1, 0, true) != LUA_OK)
        prompt_complain(L);
}

static void print_tensor(const char *name, const ed_tensor *t)
{
    char bytes[32], shape[16 * ED_MAX_RANK + 3] = "[";
    ed_ints extents = ed_shape(t);
    for (int64_t i = 0; i < extents.count; i++) {
        size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, i ? ", %lld" : "%lld",
                 (long long)extents.values[i]);
    }
    printf("  %-16s %-8s %-20s %-12s %s\n", name, ed_dtype_name(ed_dtype_of(t)), strcat(shape, "]"),
           show_bytes(ed_size(t) * (int64_t)ed_dtype_size(ed_dtype_of(t)), &bytes),
           ed_is_variable(t) ? "variable" : "");
}

static void who_command(lua_State *L, const char *rest)
{
    (void)rest;
    size_t count;
    lua_pushglobaltable(L);
    int globals = lua_gettop(L), shown = 0;
    const char **names = show_sorted_keys(L, globals, &count);
    for (size_t i = 0; i < count; i++) {
        lua_pushstring(L, names[i]);
        lua_rawget(L, globals);
        const ed_tensor *t = handle_at(L, -1, HANDLE_TENSOR);
        if (t) print_tensor(names[i], t);
        shown += t != NULL;
        lua_pop(L, 1);
    }
    if (!shown) puts("  no global variable is a tensor");
}

/* ---- The commands ---------------------------------------------------------------------------- */

static void help_command(lua_State *L, const char *rest)
{
    (void)L;
    (void)rest;
    puts("  ?name         help on a function, an op or an object; ? alone: a list of all\n"
         "  ed.search \"words\"\n"
         "  _             the last result\n"
         "  :time x       runs x, shows its time and memory\n"
         "  :timeit x     runs x many times, shows the time of one run\n"
         "  :mem          memory by the lines that created the objects\n"
         "  :who          the tensors in global variables\n"
         "  :quit         quits, as Ctrl-D does\n"
         "  TAB completes; Ctrl-C clears the line or stops a running call; Ctrl-R searches the "
         "history\n"
         "  an empty line discards an unfinished statement; stdin:7 is the 7th line entered");
}

/* Pushes a global variable, without metamethods. */
static void push_global(lua_State *L, const char *name, size_t size)
{
    lua_pushglobaltable(L);
    lua_pushlstring(L, name, size);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

/* Pushes the subject of a question: the string, or the object that it names;
 * "optimizer.iterations" for a field of an object. */
static void push_asked(lua_State *L, const char *rest)
{
    const size_t size = strcspn(rest, ".:( \t");
    push_global(L, rest, size);
    const char *kind = handle_name(L, -1);
    if (kind && rest[size] != '.' && rest[size] != ':') return;
    lua_pop(L, 1);
    if (kind)
        lua_pushfstring(L, "%s%s", kind, rest + size);
    else
        lua_pushstring(L, *rest ? rest : NULL);
}

/* Calls the module's function for ?x. */
static void ask_command(lua_State *L, const char *rest)
{
    repl_push_field(L, "help");
    push_asked(L, rest);
    if (repl_call(L, 1, 0, true) != LUA_OK) prompt_complain(L);
}

static void quit_command(lua_State *L, const char *rest)
{
    (void)L;
    (void)rest;
}

static const struct {
    const char *name;
    void (*run)(lua_State *L, const char *rest);
} commands[] = {
    {":time", time_command}, {":timeit", timeit_command}, {":mem", memory_command},
    {":who", who_command},   {":help", help_command},     {":quit", quit_command},
};

const char *command_name(size_t index)
{
    return index < sizeof commands / sizeof *commands ? commands[index].name : NULL;
}

bool command_run(lua_State *L, const char *line, bool *leave)
{
    size_t size = strcspn(line, " \t");
    const char *rest = line + size + strspn(line + size, " \t");
    if (*line != '?' && (*line != ':' || line[1] == ':')) return false;
    line_remember(line);
    if (*line == '?') return ask_command(L, line + 1 + strspn(line + 1, " \t")), true;
    for (size_t i = 0; command_name(i); i++) {
        if (strlen(command_name(i)) != size || strncmp(line, command_name(i), size) != 0) continue;
        commands[i].run(L, rest);
        *leave = commands[i].run == quit_command;
        return true;
    }
    printf("there is no %.*s; :help lists the commands\n", (int)size, line);
    return true;
}
