/* Tapes and gradients in Lua. */
#ifndef EDDY_LUA_AUTODIFF_H
#define EDDY_LUA_AUTODIFF_H

#include "lua/handle.h"

/* Puts functions into the module at the top of the stack. */
void autodiff_open(lua_State *L);

/* Puts what the prelude makes functions of into the table at the top of the stack. */
void autodiff_natives(lua_State *L);

#endif
