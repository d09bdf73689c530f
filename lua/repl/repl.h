/*
 * The program eddy: a Lua with the module loaded as ed, for scripts and at a prompt.
 *
 *     repl.c       options, scripts, exit codes
 *     prompt.c     the prompt: statements of several lines, results, errors
 *     command.c    :time, :mem, :who and the other commands of the prompt
 *     call.c       protected calls, and Ctrl-C during them
 *     line.c       a line from the terminal, and the history
 *     complete.c   what TAB offers
 *     show.c       values as the prompt prints them, colours
 *     safe.c       the libraries of --safe
 *
 * All of it runs inside one protected call of main's: what raises here and is caught nowhere else
 * ends the program with a message. Memory is Lua's, so that nothing leaks when something raises.
 */
#ifndef EDDY_LUA_REPL_REPL_H
#define EDDY_LUA_REPL_REPL_H

#include "lua/handle.h"
#include <stdio.h>

int luaopen_eddy(lua_State *L);

/* Pushes the module, or its field of that name, whatever the program did to the globals and to
 * package.loaded; runs no metamethod. */
void repl_push_module(lua_State *L);
void repl_push_field(lua_State *L, const char *name);

/* ---- call.c ---------------------------------------------------------------------------------- */

/* From now on, Ctrl-C is noted and stops what repl_call runs; coroutines too. */
void repl_call_open(lua_State *L);

/* Calls the function below `arguments` values. An error becomes a string with Lua's traceback,
 * or (briefly) with the names and lines of the functions it went through. A call that Ctrl-C
 * stops fails with "interrupted". Returns Lua's status. */
int repl_call(lua_State *L, int arguments, int results, bool briefly);

/* Whether Ctrl-C was pressed outside repl_call; repl_interrupted clears that, too. */
bool repl_pressed(void);
bool repl_interrupted(void);

/* For signal handlers: true if the signal arrived in another thread; it is then sent to the
 * right one. */
bool repl_signal_is_elsewhere(int number);

/* ---- line.c ---------------------------------------------------------------------------------- */

typedef enum line_result { LINE_READ, LINE_INTERRUPTED, LINE_END } line_result;

/* Prepares for reading lines: with editing and history if input and output are terminals that
 * support it. */
void line_open(lua_State *L);
void line_close(void);

/* Reads a line and pushes it without its newline; at the end of input pushes nothing. */
line_result line_read(lua_State *L, const char *prompt);

/* Adds to the history, for this run and later ones. */
void line_remember(const char *statement);

/* Whether no more input is waiting, typed or pasted, after the line that was read; false if
 * input is not a terminal. */
bool line_is_last(void);

/* Columns of the terminal. */
int line_width(void);

/* ---- complete.c ------------------------------------------------------------------------------ */

/* Completions of the last word before the cursor: pushes a table with the strings as keys, and
 * returns the length of the word that they begin with. May raise. */
size_t complete(lua_State *L, const char *text);

/* ---- show.c ---------------------------------------------------------------------------------- */

typedef enum style { STYLE_ERROR, STYLE_FAINT } style;

/* The sequences that begin and end a style on the stream: empty without colours. */
const char *style_begin(FILE *to, style s);
const char *style_end(FILE *to);

/* Prints a value on lines of its own. May raise the error of a metamethod. */
void show_value(lua_State *L, int at);

/* Pushes the string keys of the table, sorted, as an array of strings that live as long as the
 * table. May raise. */
const char **show_sorted_keys(lua_State *L, int table, size_t *count);

/* A number of bytes as "1.5 MB". */
const char *show_bytes(int64_t bytes, char (*room)[32]);

/* ---- command.c and prompt.c ------------------------------------------------------------------ */

/* Runs ":time x", "?name" and the like; false if the line is not a command. `leave` is set by
 * :quit. May raise. */
bool command_run(lua_State *L, const char *line, bool *leave);

/* The name of a command with its colon; NULL after the last. */
const char *command_name(size_t index);

/* Compiles an expression or a statement: returns Lua's status, with a function or the message
 * pushed. The string counts as entered, so lines in errors refer to it. */
int prompt_enter(lua_State *L, const char *text);

/* Pushes the line that a string like "stdin:5: ..." refers to; false, and pushes nothing, if
 * there is none. */
bool prompt_push_line(lua_State *L, const char *place);

/* Calls the function at the top and prints its results, or the error. */
void prompt_call(lua_State *L);

/* Prints and pops the error at the top. */
void prompt_complain(lua_State *L);

void prompt_loop(lua_State *L);

/* ---- safe.c ---------------------------------------------------------------------------------- */

/* The libraries of --safe, and no others. */
void safe_open(lua_State *L);

#endif
