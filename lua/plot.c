#include "lua/arguments.h"
#include "lua/maker.h"
#include "lua/objects.h"
#include "lua/training.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ed.write_png, and what plot.lua, which draws everything else, needs from the terminal. */

__asm__(".section .rodata\n"
        "eddy_plot:\n"
        ".incbin \"lua/plot.lua\"\n"
        "eddy_plot_end:\n"
        ".previous\n");
extern const char eddy_plot[] __attribute__((visibility("hidden")));
extern const char eddy_plot_end[] __attribute__((visibility("hidden")));

/* ---- The terminal and files ------------------------------------------------------------------ */

/* write_png(path, image) */
static int png(lua_State *L)
{
    const char *path = maker_check_text(L, 1);
    ed_tensor *image = handle_check(L, 2, HANDLE_TENSOR);
    binding b = binding_open(L);
    bool fine = ed_write_png(path, image);
    binding_close(&b);
    return fine ? 0 : handle_raise(L);
}

bool plot_coloured(FILE *to)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fileno(to)) && !(none && *none) && terminal && *terminal &&
           strcmp(terminal, "dumb") != 0;
}

static int coloured(lua_State *L)
{
    lua_pushboolean(L, plot_coloured(stdout));
    return 1;
}

/* unicode(): whether the environment says, or leaves open, that the terminal shows UTF-8. The plain
 * locale C is no statement. */
static int unicode(lua_State *L)
{
    const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"}, *value = NULL;
    for (size_t i = 0; i < 3 && !(value && *value); i++) value = getenv(names[i]);
    lua_pushboolean(L, !value || !*value || !strcmp(value, "C") || !strcmp(value, "POSIX") ||
                           strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
    return 1;
}

/* size(): columns and rows of the terminal, or a default without one. */
static int size_of(lua_State *L)
{
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    lua_pushinteger(L, known ? size.ws_col : 80);
    lua_pushinteger(L, known ? size.ws_row : 24);
    return 2;
}

static const luaL_Reg functions[] = {{"coloured", coloured},
                                     {"unicode", unicode},
                                     {"size", size_of},
                                     {"no_more", arguments_no_more},
                                     {NULL, NULL}};

void plot_open(lua_State *L, int module)
{
    arguments_push(L, "write_png", png);
    lua_setfield(L, module, "write_png");
    size_t size = (size_t)(eddy_plot_end - eddy_plot);
    if (luaL_loadbufferx(L, eddy_plot, size, "=eddy", "t") != LUA_OK) lua_error(L);
    lua_pushvalue(L, module);
    luaL_newlib(L, functions);
    luaL_newmetatable(L, TRAINING_HISTORY);
    lua_setfield(L, -2, "history");
    lua_call(L, 2, 0);
}
