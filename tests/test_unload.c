/*
 * A host that opens the library by dlopen, or the module by a Lua state, in a thread, and closes it
 * before the thread ends: what the thread has of the library is then still destroyed.
 */
#include "tests/asserts.h"
#include "tests/folders.h"
#include "tests/skip.h"
#include <dlfcn.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>

/* A thread that ends in code that is gone takes the whole process with it. */
static void run_in_thread(void *(*f)(void *))
{
    void *ok = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, f, NULL), 0);
    assert_int_equal(pthread_join(thread, &ok), 0);
    assert_non_null(ok);
}

static void *use_library(void *unused)
{
    (void)unused;
    void *library = dlopen(built("libeddy.so"), RTLD_NOW | RTLD_LOCAL);
    if (!library) return NULL;
    ed_tensor *(*number)(double) = (ed_tensor * (*)(double)) dlsym(library, "ed_number");
    double (*item)(const ed_tensor *) = (double (*)(const ed_tensor *))dlsym(library, "ed_item");
    const bool ok = number && item && item(number(3)) == 3;
    return !dlclose(library) && ok ? &run_in_thread : NULL;
}

static void *use_module(void *unused)
{
    (void)unused;
    lua_State *L = luaL_newstate();
    if (!L) return NULL;
    luaL_openlibs(L);
    lua_pushstring(L, built("lua/eddy.so"));
    lua_setglobal(L, "module");
    const bool failed =
        luaL_dostring(L, "local ed = assert(package.loadlib(module, 'luaopen_eddy'))()\n"
                         "assert(#tostring(ed.ones{2}) > 0)");
    if (failed) print_error("%s\n", lua_tostring(L, -1));
    lua_close(L);
    return failed ? NULL : &run_in_thread;
}

static void a_thread_outlives_the_library(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) run_in_thread(use_library);
}

static void a_thread_outlives_the_module(void **state)
{
    (void)state;
#ifdef EDDY_SANITIZED
    skip_since("sanitized: a second copy of the library");
#endif
    for (int i = 0; i < 3; i++) run_in_thread(use_module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_outlives_the_library),
        cmocka_unit_test(a_thread_outlives_the_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
