/* ed.plot, ed.imshow, ed.hist: into the terminal or a PNG file. */
#ifndef EDDY_LUA_PLOT_H
#define EDDY_LUA_PLOT_H

#include "lua/handle.h"

/* Whether it is a terminal that has colours, and NO_COLOR does not say otherwise. */
bool plot_coloured(FILE *to);

/* Puts them, and write_png, into the module. */
void plot_open(lua_State *L, int module);

#endif
