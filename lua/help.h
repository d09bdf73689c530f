/* ed.help and ed.search: what is known of a name. */
#ifndef EDDY_LUA_HELP_H
#define EDDY_LUA_HELP_H

#include "lua/handle.h"

/* Puts help, search, describe and signature into the module, whose prelude's text is given. */
void help_open(lua_State *L, int module, const char *prelude, size_t size);

#endif
