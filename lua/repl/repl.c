#include "lua/repl/repl.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The program: options, script, exit code, like those of lua where lua has the same. */

static const char usage[] =
    "usage: eddy [options] [script [arguments]]\n"
    "  -e code     runs the code\n"
    "  -l module   requires the module, as the global of its name\n"
    "  -i          the prompt after the script\n"
    "  -E          ignores LUA_INIT, LUA_PATH and LUA_CPATH\n"
    "  -W          shows warnings\n"
    "  -           the script is standard input\n"
    "  --          ends the options\n"
    "  --safe      no io, os, package and debug libraries, no code from files or in binary;\n"
    "              Eddy itself still reads and writes the files it is told to\n"
    "  --version   -v\n"
    "  --help      -h\n"
    "without a script: the prompt, or standard input if that is not a terminal\n"
    "LUA_INIT_5_4, or else LUA_INIT: code to begin with, or @file; not with --safe\n";

typedef struct words {
    int argc;
    char **argv;
    int script; /* the index of the script's name; argc if there is none */
    bool safe, prompt, version, help, no_environment;
    bool code; /* -e was given */
} words;

static bool is(const char *word, const char *brief, const char *name)
{
    return !strcmp(word, brief) || !strcmp(word, name);
}

/* Takes the options; false if one is unknown or incomplete. */
static bool take_options(words *w)
{
    int i = 1;
    for (; i < w->argc && w->argv[i][0] == '-' && w->argv[i][1]; i++) {
        const char *word = w->argv[w->script = i];
        if (!strcmp(word, "--")) {
            i++;
            break;
        }
        if (!strcmp(word, "-i"))
            w->prompt = true;
        else if (!strcmp(word, "--safe"))
            w->safe = true;
        else if (!strcmp(word, "-E"))
            w->no_environment = true;
        else if (is(word, "-v", "--version"))
            w->version = true;
        else if (is(word, "-h", "--help"))
            w->help = true;
        else if (!strcmp(word, "-W"))
            continue; /* run_options handles it */
        else if (word[1] == 'e' || word[1] == 'l') {
            w->code |= word[1] == 'e';
            if (!word[2] && ++i == w->argc) return false;
        } else
            return false;
    }
    w->script = i;
    return true;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Prints the error at the top, if the status is one; returns whether it is not. */
static bool report(lua_State *L, int state)
{
    if (state == LUA_OK) return true;
    const char *message = lua_tostring(L, -1);
    fflush(stdout);
    fprintf(stderr, "%seddy: %s%s\n", style_begin(stderr, STYLE_ERROR),
            message ? message : "an error that is not a string", style_end(stderr));
    lua_pop(L, 1);
    return false;
}

static bool run_code(lua_State *L, const char *code, const char *name)
{
    int state = luaL_loadbufferx(L, code, strlen(code), name, "t");
    if (state == LUA_OK) state = repl_call(L, 0, 0, false);
    return report(L, state);
}

/* "name" or "global=name" */
static bool require(lua_State *L, const char *module)
{
    const char *equals = strchr(module, '='), *name = equals ? equals + 1 : module;
    lua_getglobal(L, "require");
    if (lua_isnil(L, -1)) lua_pushliteral(L, "-l: modules are not available with --safe");
    if (lua_isstring(L, -1)) return report(L, LUA_ERRRUN);
    lua_pushstring(L, name);
    if (!report(L, repl_call(L, 1, 1, false))) return false;
    lua_pushlstring(L, module, equals ? (size_t)(equals - module) : strlen(module));
    lua_insert(L, -2);
    lua_pushglobaltable(L);
    lua_insert(L, -3);
    lua_settable(L, -3);
    return true;
}

/* -e, -l and -W in their order. */
static bool run_options(lua_State *L, const words *w)
{
    for (int i = 1; i < w->script; i++) {
        const char *word = w->argv[i];
        if (!strcmp(word, "-W")) lua_warning(L, "@on", 0);
        if (word[0] != '-' || (word[1] != 'e' && word[1] != 'l')) continue;
        const char *what = word[2] ? word + 2 : w->argv[++i];
        if (!(word[1] == 'e' ? run_code(L, what, "=(command line)") : require(L, what)))
            return false;
    }
    return true;
}

/* arg: the script has index 0, the arguments before it have negative indices. */
static void set_arg(lua_State *L, const words *w)
{
    int zero = w->script < w->argc ? w->script : 0;
    lua_createtable(L, w->argc - zero, zero);
    for (int i = 0; i < w->argc; i++) {
        lua_pushstring(L, w->argv[i]);
        lua_rawseti(L, -2, i - zero);
    }
    lua_setglobal(L, "arg");
}

/* The script, or standard input without a name. */
static bool run_file(lua_State *L, const char *name, const words *w)
{
    int state = luaL_loadfilex(L, name, w->safe ? "t" : NULL);
    if (state != LUA_OK) return report(L, state);
    int arguments = w->argc - w->script - 1;
    if (arguments < 0) arguments = 0;
    luaL_checkstack(L, arguments + 4, "too many arguments to the script");
    for (int i = 1; i <= arguments; i++) lua_pushstring(L, w->argv[w->script + i]);
    return report(L, repl_call(L, arguments, 0, false));
}

/* Runs the code of LUA_INIT. */
static bool run_init(lua_State *L, const words *w)
{
    if (w->safe || w->no_environment) return true;
    const char *name = "=LUA_INIT_5_4", *code = getenv(name + 1);
    if (!code) code = getenv((name = "=LUA_INIT") + 1);
    if (!code) return true;
    if (*code != '@') return run_code(L, code, name);
    const int state = luaL_loadfile(L, code + 1);
    return report(L, state == LUA_OK ? repl_call(L, 0, 0, false) : state);
}

static bool run_script(lua_State *L, const words *w)
{
    const char *name = w->argv[w->script];
    bool input = !strcmp(name, "-") && strcmp(w->argv[w->script - 1], "--") != 0;
    return run_file(L, input ? NULL : name, w);
}

/* ---- Start and end --------------------------------------------------------------------------- */

static const char module_key; /* of the registry */

void repl_push_module(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &module_key);
}

void repl_push_field(lua_State *L, const char *name)
{
    repl_push_module(L);
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

static void open_libraries(lua_State *L, bool safe)
{
    if (safe)
        safe_open(L);
    else
        luaL_openlibs(L);
    luaL_requiref(L, "eddy", luaopen_eddy, 0);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_key);
    lua_pushvalue(L, -1);
    lua_setglobal(L, "ed");
    lua_getfield(L, -1, "help");
    lua_setglobal(L, "help");
    lua_pop(L, 1);
}

static void greet(void)
{
    printf("Eddy %s, %s. ?name shows help on a function, :help on the prompt; Ctrl-D quits.\n",
           ed_version(), LUA_RELEASE);
}

/* The whole program, protected: returns whether all went well. */
static int work(lua_State *L)
{
    const words *w = lua_touserdata(L, 1);
    lua_gc(L, LUA_GCSTOP);
    if (w->no_environment) {
        lua_pushboolean(L, true);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    }
    open_libraries(L, w->safe);
    lua_gc(L, LUA_GCRESTART);
    set_arg(L, w);
    repl_call_open(L);
    bool script = w->script < w->argc, fine = run_init(L, w) && run_options(L, w);
    if (fine && script) fine = run_script(L, w);
    bool prompt = w->prompt || (!script && !w->code && !w->version);
    if (w->prompt || (fine && prompt && isatty(STDIN_FILENO))) {
        greet();
        prompt_loop(L);
    } else if (fine && prompt) {
        fine = run_file(L, NULL, w);
    }
    lua_pushboolean(L, fine);
    return 1;
}

int main(int argc, char **argv)
{
    words w = {.argc = argc, .argv = argv};
    if (!take_options(&w)) {
        fprintf(stderr, "eddy: %s is unknown or needs an argument\n%s", argv[w.script], usage);
        return EXIT_FAILURE;
    }
    if (w.help) return fputs(usage, stdout) < 0;
    if (w.version) printf("Eddy %s, %s\n", ed_version(), LUA_RELEASE);
    lua_State *L = luaL_newstate();
    if (!L) return fputs("eddy: out of memory\n", stderr), EXIT_FAILURE;
    lua_pushcfunction(L, work);
    lua_pushlightuserdata(L, &w);
    bool fine = report(L, lua_pcall(L, 1, 1, 0)) && lua_toboolean(L, -1);
    signal(SIGINT, SIG_DFL); /* finalizers that do not end */
    lua_close(L);
    return fine && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
