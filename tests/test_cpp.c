/*
 * eddy.hpp as its users meet it: its own tests, the programs of examples/cpp, and every snippet of
 * docs/cpp.md and README.md, each as every compiler made it in the language of 2017 and of 2020.
 */
#include "tests/children.h"

static char programs[4096]; /* where they were built */

static int setup(void **state)
{
    strcpy(programs, built("tests/cpp"));
    return folder_begin(state);
}

/* A program with a word or none, in a folder of its own; it has to end without a complaint. */
static void run(const char *build, const char *name, const char *word)
{
    char path[4600];
    snprintf(path, sizeof path, "%s/%s/%s", programs, build, name);
    run_program(path, fresh_folder("run"), NULL, (const char *[]){word, NULL});
}

/* Calls the test with the name of each build of a language: "g++-17". */
static void each(const char *language, void (*test)(const char *build))
{
    int count = 0;
    DIR *folder = opendir(programs);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *dash = strrchr(entry->d_name, '-');
        if (!dash || (strcmp(language, "all") && strcmp(dash + 1, language))) continue;
        test(entry->d_name);
        count++;
    }
    closedir(folder);
    assert_true(count >= 1);
}

/* ---- Programs -------------------------------------------------------------------------------- */

static void checked(const char *build)
{
    run(build, "check", fresh_folder("check"));
    assert_true(strtol(printed, NULL, 10) >= 30);
    assert_non_null(strstr(printed, " tests, 0 failed\n"));
}

static void its_own_tests(void **state)
{
    (void)state;
    each("all", checked);
}

static void first_learns(const char *build)
{
    run(build, "first", NULL);
    assert_true(number_after("step 300: loss ") < 1e-9);
    assert_non_null(strstr(printed, "variable \"dense/kernel\" float32 [3, 1]\n"));
}

static void first(void **state)
{
    (void)state;
    each("all", first_learns);
}

static void spirals_learn(const char *build)
{
    run(build, "spirals", fresh_folder("spirals"));
    assert_true(number_after("epoch 20: loss ") < 0.1);
    assert_true(number_after("best accuracy: ") > 95);
}

static void spirals(void **state)
{
    (void)state;
    each("20", spirals_learn);
}

/* One that is new is to be tested here too. */
static void none_is_forgotten(void **state)
{
    (void)state;
    assert_string_equal(names_in("examples/cpp"), "first.cc spirals.cc");
}

/* ---- The manual ------------------------------------------------------------------------------ */

static void the_manual_is_right(const char *build)
{
    char path[4600];
    snprintf(path, sizeof path, "%s/%s/manual", programs, build);
    run_manual(path, "docs/cpp.md", 20);
}

static void the_manual(void **state)
{
    (void)state;
    each("20", the_manual_is_right);
}

static void readme_runs(const char *build)
{
    run(build, "readme", NULL);
    assert_non_null(strstr(printed, "variable \"dense/kernel\" float32 [3, 1]\n"));
}

static void the_readme(void **state)
{
    (void)state;
    each("20", readme_runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_tests), cmocka_unit_test(first),
        cmocka_unit_test(spirals),       cmocka_unit_test(none_is_forgotten),
        cmocka_unit_test(the_manual),    cmocka_unit_test(the_readme),
    };
    return cmocka_run_group_tests(tests, setup, children_end);
}
