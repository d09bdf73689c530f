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

/* Pushes the module, or what it has under the name, whatever the program made of the globals and of
 * package.loaded; runs nothing of it. */
void repl_push_module(lua_State *L);
void repl_push_field(lua_State *L, const char *name);

/* ---- call.c ---------------------------------------------------------------------------------- */

/* Ctrl-C from now on is noted, and stops whatever repl_call runs; coroutines too. */
void repl_call_open(lua_State *L);

/*
 * Calls the function below `arguments` values. An error becomes a text with Lua's traceback, or
 * (briefly) with the names and lines of the functions it went through. A call that Ctrl-C stops
 * fails with "interrupted". Lua's state.
 */
int repl_call(lua_State *L, int arguments, int results, bool briefly);

/* Whether Ctrl-C came outside repl_call / and forgets it. */
bool repl_pressed(void);
bool repl_interrupted(void);

/* For handlers: true if another thread was chosen for the signal; the right one then gets it. */
bool repl_signal_is_elsewhere(int number);

/* ---- line.c ---------------------------------------------------------------------------------- */

typedef enum line_result { LINE_READ, LINE_INTERRUPTED, LINE_END } line_result;

/* Prepares for reading lines: with editing and a history if both ends are terminals that can. */
void line_open(lua_State *L);
void line_close(void);

/* Reads a line and pushes it without its end, or pushes nothing. */
line_result line_read(lua_State *L, const char *prompt);

/* What the up arrow brings back, in this run and later ones. */
void line_remember(const char *statement);

/* Whether nothing more has been typed, or pasted, behind the line that was read; false where that
 * does not come from a terminal. */
bool line_is_last(void);

/* Columns of the terminal. */
int line_width(void);

/* ---- complete.c ------------------------------------------------------------------------------ */

/*
 * What could stand for the last word of a text that ends at the cursor. Pushes a table of the texts
 * as keys, and gives the length of the word that they begin with. May raise.
 */
size_t complete(lua_State *L, const char *text);

/* ---- show.c ---------------------------------------------------------------------------------- */

typedef enum style { STYLE_ERROR, STYLE_FAINT } style;

/* What begins and what ends a style on the stream: empty where colours are not wanted. */
const char *style_begin(FILE *to, style s);
const char *style_end(FILE *to);

/* Prints a value on lines of its own. May raise: what a metamethod raises. */
void show_value(lua_State *L, int at);

/* Pushes the text keys of the table in order, as an array of texts that live as long as the table
 * does. May raise. */
const char **show_sorted_keys(lua_State *L, int table, size_t *count);

/* Bytes as people read them: "1.5 MB". */
const char *show_bytes(int64_t bytes, char (*room)[32]);

/* ---- command.c and prompt.c ------------------------------------------------------------------ */

/* Runs ":time x", "?name" and their kin; false if the line is no command. `leave` is set by :quit.
 * May raise. */
bool command_run(lua_State *L, const char *line, bool *leave);

/* The name of a command with its colon; NULL behind the last. */
const char *command_name(size_t index);

/* Compiles an expression or a statement: Lua's state, a function or the message pushed. The text
 * counts as entered, so that places in it name its lines. */
int prompt_enter(lua_State *L, const char *text);

/* Pushes the line that a text like "stdin:5: ..." names; false, and nothing, if it names none. */
bool prompt_push_line(lua_State *L, const char *place);

/* Calls the function at the top and prints its results, or the error. */
void prompt_call(lua_State *L);

/* Prints the error at the top, which goes. */
void prompt_complain(lua_State *L);

void prompt_loop(lua_State *L);

/* ---- safe.c ---------------------------------------------------------------------------------- */

/* The libraries of --safe, and no others. */
void safe_open(lua_State *L);

#endif
