/* Tables within tables of numbers or booleans, as tensors. */
#ifndef EDDY_LUA_TABLES_H
#define EDDY_LUA_TABLES_H

#include "lua/handle.h"

/* What is wanted of a table of numbers. */
typedef struct tables_wanted {
    ed_dtype dtype;  /* of the tensor; NONE: by the numbers, as convert.h says */
    ed_dtype likely; /* without dtype: of tables of whole numbers, of floats too if it is a float */
    bool whole;      /* without dtype: floats that are whole are whole numbers */
    bool named;      /* names among its keys are options, and somebody else's */
} tables_wanted;

/*
 * The table at a place of the stack as a tensor that the scope owns. NULL with an error where
 * lengths differ, numbers are missing, kinds mix, or a number can't be of the dtype. NULL without
 * one, and *tensors true, where a tensor is among the elements. Raises nothing.
 */
ed_tensor *tables_tensor(lua_State *L, int at, const tables_wanted *wanted, bool *tensors);

#endif
