/*
 * What make bench is made of: Eddy's workloads, checked and not timed; the comparison of two files
 * of figures, and the tables.
 */
#include "tests/folders.h"

static char printed[1 << 16];

/* Runs a command of the shell; its exit code. */
__attribute__((format(printf, 1, 2))) static int run(const char *format, ...)
{
    char command[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    printed[fread(printed, 1, sizeof printed - 1, output)] = 0;
    int status = pclose(output);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void need_python(void)
{
    if (run("python3 -c 1 2> /dev/null")) skip_since("there is no python3");
}

#define assert_printed(what)                                                                       \
    do {                                                                                           \
        if (!strstr(printed, what)) fail_msg("not printed: %s\n%s", what, printed);                \
    } while (0)

/* Two rounds of two workloads, of which the second takes `seconds` at the best; a peer, limits. */
static const char *figures(const char *name, double seconds)
{
    const char *path = in_folder("%s", name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(
        file,
        "{\"machine\": {\"processor\": \"P\", \"vectors\": \"V\", \"cores\": 2, \"memory\": 8,"
        " \"system\": \"S\"}, \"versions\": {\"Eddy\": \"Eddy 1\", \"Other\": \"Other 2\"},"
        " \"work\": {\"limit.flops\": [\"flops\", 4e9], \"a.calls\": [\"calls\", 0],"
        " \"b.product\": [\"flops\", 1e9, 9.6e8],"
        " \"limit.copy_memory\": [\"bytes\", 2e9, 0]}, \"memory\": {\"a.calls\": {\"Eddy\": 2e6}},"
        " \"seconds\": {\"1\": {\"Eddy\": {\"limit.flops\": [%g, 1], \"limit.copy_memory\": [1],"
        " \"a.calls\": [2e-6, 1e-6],"
        " \"b.product\": [%g, 1]}, \"Other\": {\"b.product\": [8]}}}}",
        seconds, seconds);
    fclose(file);
    return path;
}

static void slower_workloads_are_named(void **state)
{
    (void)state;
    need_python();
    const char *old = figures("old.json", 0.5), *same = figures("same.json", 0.52),
               *slow = figures("slow.json", 0.6);
    assert_int_equal(run("bench/slower.py %s %s", old, same), 0);
    assert_printed("0 of 2 are slower by more than 10 %");
    assert_int_equal(run("bench/slower.py %s %s", old, slow), 1);
    assert_printed("| 1 | b.product | 500 ms | 600 ms | 1.20 |");
    assert_printed("1 of 2 are slower");
    assert_null(strstr(printed, "limit"));
    assert_int_equal(run("bench/slower.py %s %s 1.3", old, slow), 0);
    assert_int_equal(run("bench/slower.py %s %s", slow, old), 0);
    assert_int_equal(run("bench/slower.py %s 2> /dev/null", old), 1);
}

static void tables_have_ratios_and_limits(void **state)
{
    (void)state;
    need_python();
    assert_int_equal(run("cd bench && python3 -B -c 'import json, report, sys\n"
                         "print(\"\\n\".join(report.document(json.load(open(sys.argv[1])))))' %s",
                         figures("figures.json", 0.5)),
                     0);
    assert_printed("This machine's limits: flops 8 GFLOP/s, copy memory 2 GB/s.");
    assert_printed("| b | 1 | 16.00 | 0 | 1 | 16.00 |");
    assert_printed("| a.calls | 1 us | - | - | - |");
    assert_printed("| b.product | 500 ms | 8 s | 16.00 | 0.96 |");
    assert_printed("| a.calls | 2.0 |");
}

static void peers_have_the_same_workloads(void **state)
{
    (void)state;
    need_python();
    if (run("python3 -c 'import numpy' 2> /dev/null")) skip_since("Python has no NumPy");
    assert_int_equal(run("python3 -B bench/peers/with_numpy.py --list > %s", in_folder("peer")), 0);
    assert_int_equal(
        run("${EMULATOR:-} %s --list > %s", built("bench/eddy_bench"), in_folder("own")), 0);
    assert_int_equal(run("cut -f 1 %s | grep -vxFf %s", in_folder("peer"), in_folder("own")), 1);
}

static void workloads_are_right(void **state)
{
    (void)state;
    int code = run("${EMULATOR:-} %s --check --only dispatch,random.dropout_65536,training.xor",
                   built("bench/eddy_bench"));
    if (code) fail_msg("%s", printed);
    assert_printed("dispatch.add_1\tok");
    assert_printed("training.xor_b4\tok");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slower_workloads_are_named),
        cmocka_unit_test(tables_have_ratios_and_limits),
        cmocka_unit_test(peers_have_the_same_workloads),
        cmocka_unit_test(workloads_are_right),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
