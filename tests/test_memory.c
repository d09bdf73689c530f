/*
 * Memory as debuggers see it: with EDDY_CACHE=0 every block goes back to the system at once, and
 * under the address sanitizer whoever uses a tensor after its scope, or reads past its end, is
 * reported. Each is tried in a process of its own: this program, started with the trial's name.
 */
#include "eddy.h"
#include "tests/folders.h"
#include <malloc.h>
#include <sys/wait.h>

#if defined __SANITIZE_ADDRESS__
enum { ADDRESS_SANITIZED = 1 };
#elif defined __has_feature
enum { ADDRESS_SANITIZED = __has_feature(address_sanitizer) };
#else
enum { ADDRESS_SANITIZED = 0 };
#endif

/* ---- Trials ---------------------------------------------------------------------------------- */

static ed_tensor *made_in_a_scope(void)
{
    ED_SCOPE;
    return ed_add(ed_ones(ED_SHAPE(5)), 1);
}

static double after_scope(void)
{
    return ed_item(ed_reduce_sum(made_in_a_scope()));
}

static double data_after_scope(void)
{
    const float *data;
    {
        ED_SCOPE;
        data = ed_data(ed_ones(ED_SHAPE(5)));
    }
    return data[4];
}

static double past_end(void)
{
    volatile int64_t end = 5;
    const float *data = ed_data(ed_ones(ED_SHAPE(end)));
    return data[end];
}

static void some_work(void)
{
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(1000));
    for (int i = 0; i < 100; i++) x = ed_mul(x, 1);
    ed_mul(ed_ones(ED_SHAPE(1 << 20)), 2);
}

/* Bytes that stay with Eddy, by its own account and by the system's, when all is released. */
static double bytes_kept(void)
{
    ed_memory_set_cache_limit(1 << 30);
    ed_set_num_threads(1);
    some_work(); /* what is made once */
    const size_t before = mallinfo2().uordblks;
    some_work();
    const size_t system = ADDRESS_SANITIZED ? 0 : mallinfo2().uordblks - before;
    return (double)ed_memory_stats().cached_bytes + (double)system;
}

static const struct {
    const char *name;
    double (*run)(void);
} trials[] = {{"after_scope", after_scope},
              {"data_after_scope", data_after_scope},
              {"past_end", past_end},
              {"bytes_kept", bytes_kept}};

static int run_trial(const char *name)
{
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        if (!strcmp(trials[i].name, name)) return printf("%.17g\n", trials[i].run()) < 0;
    return 2;
}

/* What the trial prints, with these settings before it, on either stream; its exit code. */
static int try(const char *settings, const char *name, char *printed, size_t room)
{
    char command[4300];
    snprintf(command, sizeof command, "%s $EMULATOR '%s' %s 2>&1", settings,
             built("tests/test_memory"), name);
    FILE *child = popen(command, "r");
    assert_non_null(child);
    printed[fread(printed, 1, room - 1, child)] = 0;
    while (fgetc(child) != EOF) {}
    return WEXITSTATUS(pclose(child));
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Its chunks count as in use. */
#define NO_TCACHE "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"

static void cache_can_be_switched_off(void **state)
{
    (void)state;
    char printed[1000];
    assert_int_equal(try("EDDY_CACHE=0 " NO_TCACHE, "bytes_kept", printed, sizeof printed), 0);
    assert_string_equal(printed, "0\n");
#ifndef EDDY_SANITIZED
    assert_int_equal(try("EDDY_CACHE=1", "bytes_kept", printed, sizeof printed), 0);
    assert_true(atof(printed) > 1e6);
#endif
}

static void sanitizer_sees_use_after_scope(void **state)
{
    (void)state;
    char printed[8000];
    const char *settings = "ASAN_OPTIONS=detect_leaks=0";
    assert_true(try(settings, "after_scope", printed, sizeof printed) != 0);
    assert_non_null(strstr(printed, "heap-use-after-free"));
    assert_true(try(settings, "data_after_scope", printed, sizeof printed) != 0);
    assert_non_null(strstr(printed, "heap-use-after-free"));
    assert_true(try(settings, "past_end", printed, sizeof printed) != 0);
    assert_non_null(strstr(printed, "heap-buffer-overflow"));
}

int main(int argc, char **argv)
{
    if (argc == 2) return run_trial(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_can_be_switched_off),
        cmocka_unit_test(sanitizer_sees_use_after_scope),
    };
    return _cmocka_run_group_tests("memory", tests, ADDRESS_SANITIZED ? 2 : 1, NULL, NULL);
}
