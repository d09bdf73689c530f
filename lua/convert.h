/*
 * Lua's values as Eddy's and back. What turns Lua's values into tensors raises nothing: it is
 * called while a scope is open. It keeps an Eddy error instead.
 */
#ifndef EDDY_LUA_CONVERT_H
#define EDDY_LUA_CONVERT_H

#include "lua/handle.h"
#include "lua/tables.h"
#include "ops/op.h"

/*
 * An operand: a tensor, a number (which takes the dtype it meets), a boolean, or a table of tables
 * of numbers, which becomes a tensor: whole numbers int32 (int64 where they are too large), others
 * float32, booleans bool; dtype says otherwise. A table of tensors of one shape is stacked. NULL
 * with an error for anything else.
 */
ed_tensor *convert_operand(lua_State *L, int at, ed_dtype dtype);

/* The same with more that is wanted of tables. */
ed_tensor *convert_values(lua_State *L, int at, const tables_wanted *wanted);

typedef struct convert_text {
    char s[192];
} convert_text;

/* A tensor's dtype and shape, for messages: "float32[2, 3]". */
convert_text convert_type(const ed_tensor *t);

/* What a value is, for messages: "an optimizer", "a closed tensor", "1.5", "the string 'a'". */
convert_text convert_kind(lua_State *L, int at);

/* Whether the value can be an operand at all: not a table of options. */
bool convert_is_operand(lua_State *L, int at);

/* A table of tensors as a list; owned by the scope. NULL with an error. */
ed_list *convert_list(lua_State *L, int at);

/* Pushes a list's tensors as a table of userdata (false for NULL entries). May raise: no scope may
 * be open but the caller's handles. */
void convert_push_list(lua_State *L, ed_list *list);

/* Pushes the elements of a contiguous tensor as nested tables of numbers or booleans, a scalar as
 * itself. May raise. */
void convert_push_elements(lua_State *L, const ed_tensor *t);

/* Pushes the numbers as a table. May raise. */
void convert_push_ints(lua_State *L, ed_ints list);

/* Pushes element i of an array of the dtype; needs one free place, raises nothing. */
void convert_push_element(lua_State *L, ed_dtype dtype, const void *data, int64_t i);

/* "float32" and so on. ED_DTYPE_NONE for any other text. */
ed_dtype convert_dtype(const char *name);

/* ---- Options --------------------------------------------------------------------------------- */

/* Whether a field of that type counts axes or indices: from 1 in Lua. */
bool convert_counts(ed_field_type type);

/* Room for the lists of numbers among a call's options; long ones are in the open scope. */
typedef struct convert_room {
    int64_t numbers[8 * ED_MAX_RANK];
    int used;
    bool named; /* a table that is an operand has the options among its keys */
    const char *who;
} convert_room;

/*
 * The value at a place of the stack into a field of the structure. Counting is Lua's: axes and
 * places begin at 1 (-1 being the last). false, with an Eddy error, if it is of another kind.
 */
bool convert_field(lua_State *L, int at, const ed_field *field, void *structure,
                   convert_room *room);

/* The same for a list that is given as numbers in a row. */
bool convert_row(lua_State *L, int first, int count, const ed_field *field, void *structure,
                 convert_room *room);

/* Fields that options can be called by: an array of structures, each of which begins with its name,
 * up to one without. */
typedef struct convert_names {
    const void *first;
    size_t size; /* of one */
} convert_names;

/* Puts the value at the top of the stack into the structure, as a field, one of those, says. */
typedef bool convert_read(lua_State *L, const void *field, void *structure, convert_room *room);

/*
 * Reads all named options of the table at `at`, which may have values at the first so many places
 * beside them. A name that is none of the fields', and any other key, is an error.
 */
bool convert_named(lua_State *L, int at, lua_Integer places, convert_names fields,
                   convert_read *read, void *structure, convert_room *room);

/* The same for a schema, of a table that may be absent; `places` values without a name may stand in
 * it. */
bool convert_schema(lua_State *L, int at, const ed_field *schema, lua_Integer places,
                    void *structure, convert_room *room);

/* The same for a schema, of a table that may be absent and have a list beside its names. */
bool convert_options(lua_State *L, int at, const ed_field *schema, void *structure,
                     convert_room *room);

/* Whether the text at a place of the stack is one that C can take: it has no zero byte. */
bool convert_is_plain(lua_State *L, int at);

/* Whether the table has a name among its keys. */
bool convert_has_names(lua_State *L, int at);

#endif
