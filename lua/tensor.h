/* Tensors in Lua. */
#ifndef EDDY_LUA_TENSOR_H
#define EDDY_LUA_TENSOR_H

#include "lua/handle.h"

/* Puts functions into the module at the top of the stack and pushes the table of a tensor's
 * methods. */
void tensor_open(lua_State *L);

#endif
