#include "lua/repl.h"
#include <string.h>
#include <time.h>

/*
 * What begins with a colon or a question mark is for the prompt itself. ("::label::" is Lua.)
 */

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
    if (prompt_compile(L, rest) != LUA_OK) return prompt_complain(L);
    ed_memory before = ed_memory_stats();
    ed_memory_reset_peak();
    double start = now();
    prompt_call(L);
    double took = now() - start;
    ed_memory after = ed_memory_stats();
    print_seconds(took);
    printf("; holds %s more, %s more at the most\n",
           show_bytes(after.live_bytes - before.live_bytes, &held),
           show_bytes(after.peak_bytes - before.live_bytes, &peak));
}

/* ---- :mem, :who ------------------------------------------------------------------------------ */

static void memory_command(lua_State *L, const char *rest)
{
    (void)rest;
    char live[32], cached[32], peak[32], lua[32];
    ed_memory m = ed_memory_stats();
    int64_t scripts = (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + lua_gc(L, LUA_GCCOUNTB);
    printf("%lld tensors in %s, %s at the most; kept for reuse %s; Lua %s\n",
           (long long)m.live_tensors, show_bytes(m.live_bytes, &live),
           show_bytes(m.peak_bytes, &peak), show_bytes(m.cached_bytes, &cached),
           show_bytes(scripts, &lua));
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
    if (!shown) puts("  no global is a tensor");
}

/* ---- The commands ---------------------------------------------------------------------------- */

static void help_command(lua_State *L, const char *rest)
{
    (void)L;
    (void)rest;
    puts("  ?name         what a function, an op or an object does; ? alone: what there is\n"
         "  ed.search \"words\"\n"
         "  _             the last result\n"
         "  :time x       runs x, says how long it took and what it holds\n"
         "  :mem          memory\n"
         "  :who          the tensors among the globals\n"
         "  :quit         leaves, as Ctrl-D does\n"
         "  TAB completes; Ctrl-C clears the line or stops what runs; Ctrl-R searches the history");
}

/* Calls the module's function with the text, or with what it names: ?x where x is a tensor. */
static void ask_command(lua_State *L, const char *rest)
{
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "eddy");
    lua_getfield(L, -1, "help");
    lua_pushstring(L, *rest ? rest : NULL);
    if (*rest) {
        lua_getglobal(L, rest);
        if (lua_isuserdata(L, -1))
            lua_replace(L, -2);
        else
            lua_pop(L, 1);
    }
    if (repl_call(L, 1, 0, true) != LUA_OK) prompt_complain(L);
}

static void quit_command(lua_State *L, const char *rest)
{
    (void)L;
    (void)rest;
}

const char *const command_names[] = {":time", ":mem", ":who", ":help", ":quit", NULL};
static void (*const commands[])(lua_State *L, const char *rest) = {
    time_command, memory_command, who_command, help_command, quit_command};

bool command_run(lua_State *L, const char *line, bool *leave)
{
    size_t size = strcspn(line, " \t");
    const char *rest = line + size + strspn(line + size, " \t");
    if (*line != '?' && (*line != ':' || line[1] == ':')) return false;
    line_remember(line);
    if (*line == '?') return ask_command(L, line + 1 + strspn(line + 1, " \t")), true;
    for (int i = 0; command_names[i]; i++) {
        if (strlen(command_names[i]) != size || strncmp(line, command_names[i], size) != 0)
            continue;
        commands[i](L, rest);
        *leave = commands[i] == quit_command;
        return true;
    }
    printf("there is no %.*s; :help lists the commands\n", (int)size, line);
    return true;
}
