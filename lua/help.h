/* ed.help and ed.search: what is known of a name. */
#ifndef EDDY_LUA_HELP_H
#define EDDY_LUA_HELP_H

#include "lua/handle.h"

/* Puts help, search, describe and signature into the module, whose prelude's text is given. */
void help_open(lua_State *L, int module, const char *prelude, size_t size);

/* Pushes a function: f(x, alone) gives the names of the options of x, a function, an object or a
 * name; with `alone` also those of arguments that have a place, which may be named too. */
void help_push_options(lua_State *L);

/* Pushes a table of the names of activations. */
void help_push_activations(lua_State *L);

#endif
