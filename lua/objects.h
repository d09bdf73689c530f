/* The parts of the binding, one file each: each puts its functions into the module, which is at
 * the top of the stack, and its methods into the metatables. */
#ifndef EDDY_LUA_OBJECTS_H
#define EDDY_LUA_OBJECTS_H

#include "lua/convert.h"

void autodiff_open(lua_State *L);
void functions_open(lua_State *L);
void kinds_open(lua_State *L);
void sparse_open(lua_State *L);
void layers_open(lua_State *L);
void custom_layers_open(lua_State *L);
void graph_open(lua_State *L);
void optimizers_open(lua_State *L);
void losses_open(lua_State *L);
void loop_open(lua_State *L);
void metrics_open(lua_State *L);
void families_open(lua_State *L);
void print_open(lua_State *L);
void random_open(lua_State *L);
void datasets_open(lua_State *L);
void csv_open(lua_State *L);
void files_open(lua_State *L);
void model_files_open(lua_State *L);
void checkpoints_open(lua_State *L);
void trackables_open(lua_State *L);

/* tensor.c: the same; pushes the table of a tensor's methods. */
void tensor_open(lua_State *L);

/* autodiff.c, closures.c: put the functions that prelude.lua uses into the table at the top of the
 * stack. */
void autodiff_natives(lua_State *L);
void closure_natives(lua_State *L);

/* The methods of a kind, and its metamethods; `index` gets the table of methods as its upvalue
 * (NULL: any other field is an error). */
void objects_methods(lua_State *L, handle_kind kind, const luaL_Reg *methods,
                     const luaL_Reg *metamethods, lua_CFunction index);

/* Pushes the table of the tensors' methods. */
void objects_push_tensor_methods(lua_State *L);

/* For index functions: pushes the method of the name at 2, if there is one. */
bool objects_method(lua_State *L);

/* Raises that the object at 1 has no field of the name at 2. */
int objects_no_field(lua_State *L);

/* Pushes a string with a line for the layer and each one below it, with their variables. */
void layers_push_tree(lua_State *L, const ed_layer *layer);

/* The variables of the value at an index: a table of variables, one variable, or a layer (its
 * trainable ones). Inside a scope; NULL with an error. */
ed_list *objects_variables(lua_State *L, int at);

/*
 * The entries of the table at an index of the stack whose keys are strings, sorted, so that the
 * same entries are always in the same order. Returns the names, *count of them, and pushes what
 * keeps them alive, then a table of the values: a finalizer that runs meanwhile may change the
 * table, not these. With `who`, keys that are not strings, or contain a zero byte, raise an error
 * of it. May raise.
 */
const char **objects_entries(lua_State *L, int at, const char *who, lua_Integer *count);

/* As binding_finish, with a handle of a list: pushes a table of its tensors. */
int objects_finish_list(lua_State *L, binding *b, handle *h, void *list);

/* ---- plot.c: ed.plot, ed.imshow, ed.hist, into the terminal or a PNG file -------------------- */

/* Puts them, and write_png, into the module. */
void plot_open(lua_State *L, int module);

/* Whether it is a terminal with colours, and NO_COLOR is not set. */
bool plot_coloured(FILE *to);

/* ---- print.c: tensors as strings, by ed.print_options ---------------------------------------- */

/* The tensor as a string for tostring / for a terminal of that size, unless the program set
 * print_options. Inside a scope, which owns the string; NULL with an error. */
const char *print_string(lua_State *L, const ed_tensor *t);
const char *print_fitting(lua_State *L, const ed_tensor *t, int columns, int rows);

/* The same of a sparse tensor, for tostring. */
const char *print_sparse(lua_State *L, const ed_sparse_tensor *x);

/* ---- help.c: help on a name ------------------------------------------------------------------ */

/* Puts help, search, describe and signature into the module; gets the prelude's source. */
void help_open(lua_State *L, int module, const char *prelude, size_t size);

/* Reads the signatures of help.txt, for arguments_set. */
void help_signatures(lua_State *L);

/* Pushes a function: f(x, alone) returns the names of the options of x, a function, an object or
 * a name; with `alone` also those of positional arguments, which may be named too. */
void help_push_options(lua_State *L);

/* Pushes the table that the __index of objects of that kind is, or that its function looks into
 * first; its methods. */
void help_push_methods(lua_State *L, const char *kind_name);

/* Pushes the value of a field of the structure as a Lua program would give it: nil for what is not
 * given, and for objects. */
void help_push_attr(lua_State *L, const ed_field *field, const void *structure);

/* Pushes a table of the names of activations. */
void help_push_activations(lua_State *L);

/* ---- suggest.c: suggestions for names that do not exist -------------------------------------- */

/* Makes such names errors, in the module and its tables. */
void suggest_open(lua_State *L, int module);

/* Pushes the suggestion for the name at an index of the stack, to follow the message that
 * `where` ("ed", "ed.random", or a kind of objects) has no such name: "; did you mean ed.clip?",
 * or "". table: the index of the table of names if `where` is not a kind, else 0. */
const char *suggest_push(lua_State *L, const char *where, int name, int table);

/* ---- What a checkpoint can save -------------------------------------------------------------- */

/* Pushes an object that saves the values of the table at an index of the stack. May raise. */
void trackables_push(lua_State *L, int at);

/* The object at an index of the stack that a checkpoint can save; a table of tensors is a list
 * of them. Inside a scope, which owns what is created; NULL with an error that calls it `name`. */
void *trackables_object(lua_State *L, int at, const char *name);

#endif
