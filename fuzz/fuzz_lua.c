#include "fuzz/fuzz.h"
#include <fcntl.h>
#include <ftw.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * The input is a program in Lua that calls the module with whatever comes (chunk.lua says how it is
 * made). It runs in a Lua of its own, in an empty folder, for so many instructions and with so much
 * memory. Whatever it does: no error of Eddy's is kept after a statement, errors are texts or what
 * the program raised itself, a computation afterwards gives what it should, and once Lua is closed
 * nothing is left.
 */

int luaopen_eddy(lua_State *L);

__asm__(".section .rodata\n"
        ".balign 16\n"
        "eddy_fuzz_chunk:\n"
        ".incbin \"fuzz/chunk.lua\"\n"
        "eddy_fuzz_chunk_end:\n"
        ".previous\n");
extern const char eddy_fuzz_chunk[] __attribute__((visibility("hidden")));
extern const char eddy_fuzz_chunk_end[] __attribute__((visibility("hidden")));

enum { INSTRUCTIONS = 100000, LUA_BYTES = 64 << 20 };

/* What Eddy may ask the system for; with sanitizers it is their options that say so. */
#define EDDY_BYTES (INT64_C(4) << 30)

/* ---- A Lua ----------------------------------------------------------------------------------- */

static void *allocate(void *user, void *block, size_t old, size_t size)
{
    size_t *used = user, before = block ? old : 0;
    if (!size) return *used -= before, free(block), NULL;
    if (size > before && *used + size - before > LUA_BYTES) return NULL;
    void *now = realloc(block, size);
    if (now) *used += size - before;
    return now;
}

static void claim_fine(lua_State *L, int state, const char *what)
{
    if (state != LUA_OK) fuzz_claim(false, "%s: %s", what, luaL_tolstring(L, -1, NULL));
}

static int open_all(lua_State *L)
{
    luaL_openlibs(L);
    luaL_requiref(L, "eddy", luaopen_eddy, 0);
    return 0;
}

static lua_State *new_lua(size_t *used)
{
    *used = 0;
    lua_State *L = lua_newstate(allocate, used);
    fuzz_claim(L, "there is no Lua");
    lua_pushcfunction(L, open_all);
    claim_fine(L, lua_pcall(L, 0, 0, 0), "the module");
    return L;
}

static lua_State *maker; /* of programs */

__attribute__((destructor)) static void close_maker(void)
{
    if (maker) lua_close(maker);
}

static void open_maker(void)
{
    static size_t used;
    maker = new_lua(&used);
    size_t length = (size_t)(eddy_fuzz_chunk_end - eddy_fuzz_chunk);
    claim_fine(maker, luaL_loadbuffer(maker, eddy_fuzz_chunk, length, "=chunk.lua"), "the maker");
    claim_fine(maker, lua_pcall(maker, 0, 1, 0), "the maker");
}

/* The program of an input, which stays on the maker's stack. */
static const char *program_of(const uint8_t *data, size_t size)
{
    if (!maker) open_maker();
    lua_pushvalue(maker, 1);
    lua_pushlstring(maker, (const char *)data, size);
    claim_fine(maker, lua_pcall(maker, 1, 1, 0), "the maker");
    return lua_tostring(maker, -1);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* check(fine, what): after every statement. */
static int check(lua_State *L)
{
    fuzz_claim(lua_toboolean(L, 1), "%s", luaL_tolstring(L, 2, NULL));
    fuzz_claim(!ed_failed(), "an error is kept after a statement");
    return 0;
}

/* From then on nearly at once, for the program may catch it. */
static void too_long(lua_State *L, lua_Debug *at)
{
    (void)at;
    lua_sethook(L, too_long, LUA_MASKCOUNT, 100);
    luaL_error(L, "too long");
}

static int run_program(lua_State *L)
{
    const char *program = lua_touserdata(L, 1);
    lua_register(L, "fuzz_check", check);
    if (luaL_loadbuffer(L, program, strlen(program), "=program") != LUA_OK) return lua_error(L);
    lua_sethook(L, too_long, LUA_MASKCOUNT, INSTRUCTIONS);
    lua_call(L, 0, 0);
    return 0;
}

/* Runs out of instructions and of memory are no failure. */
static bool is_bounds(const char *message)
{
    return message && (strstr(message, "too long") || strstr(message, "not enough memory"));
}

static const char next[] = "local ed = require 'eddy'\n"
                           "assert(ed.tensor({1, 2}):sum():item() == 3)\n"
                           "assert(ed.grad(function(x) return x ^ 3 end)(2.0):item() == 12)";

static void run_in(lua_State *L, const char *program)
{
    lua_pushcfunction(L, run_program);
    lua_pushlightuserdata(L, (void *)program);
    int state = lua_pcall(L, 1, 0, 0);
    if (state != LUA_OK && !is_bounds(lua_tostring(L, -1))) claim_fine(L, state, "the program");
    lua_sethook(L, NULL, 0, 0);
    lua_settop(L, 0);
    lua_gc(L, LUA_GCCOLLECT);
    claim_fine(L, luaL_dostring(L, next), "the next computation");
}

static void limit_memory(bool limited)
{
#ifndef EDDY_SANITIZED
    struct rlimit now;
    fuzz_claim(!getrlimit(RLIMIT_AS, &now), "there are no limits");
    now.rlim_cur = limited ? (rlim_t)EDDY_BYTES : now.rlim_max;
    fuzz_claim(!setrlimit(RLIMIT_AS, &now), "memory can't be limited");
#else
    (void)limited;
#endif
}

/* ---- The folder ------------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    return where->level ? remove(path) : 0;
}

/* Into a folder where there is nothing; returns the way back. */
static int enter_folder(void)
{
    int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fuzz_claim(back >= 0 && !chdir(fuzz_folder()), "there is no folder");
    return back;
}

static void leave_folder(int back)
{
    nftw(".", remove_one, 16, FTW_PHYS | FTW_DEPTH);
    fuzz_claim(!fchdir(back) && !close(back), "there is no way back");
}

void fuzz_lua(const uint8_t *data, size_t size)
{
    const char *program = program_of(data, size);
    size_t used;
    fuzz_allow(EDDY_BYTES);
    int back = enter_folder();
    limit_memory(true);
    lua_State *L = new_lua(&used);
    run_in(L, program);
    lua_close(L);
    fuzz_claim(!used, "Lua left %zu bytes", used);
    limit_memory(false);
    leave_folder(back);
    lua_settop(maker, 1);
    lua_gc(maker, LUA_GCCOLLECT); /* the same memory as before: nothing looks like a leak */
    ed_memory_set_cache_limit(1 << 30);
}
