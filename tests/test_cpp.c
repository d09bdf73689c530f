/*
 * eddy.hpp as its users meet it: its own tests, the programs of examples/cpp, and every snippet of
 * docs/cpp.md and README.md, each as every compiler made it in the language of 2017 and of 2020.
 */
#include "tests/folders.h"
#include <fcntl.h>
#include <sys/wait.h>

static char programs[4096], source[2048]; /* where they were built; the folder of the sources */
static char *printed;                     /* by the last run, both streams */

static int setup(void **state)
{
    strcpy(programs, built("tests/cpp"));
    if (!getcwd(source, sizeof source)) return 1;
    return folder_begin(state);
}

static int teardown(void **state)
{
    free(printed);
    return folder_end(state);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void in_child(const char *program, const char *folder, const char *output, const char *word)
{
    int to = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (to < 0 || dup2(to, 1) < 0 || dup2(to, 2) < 0 || chdir(folder)) _exit(126);
    execl(program, program, word, NULL);
    _exit(127);
}

/* A program with a word or none, in a folder of its own; it has to end without a complaint. */
static void run(const char *build, const char *name, const char *word)
{
    char path[4600];
    snprintf(path, sizeof path, "%s/%s/%s", programs, build, name);
    const char *output = in_folder("output"), *folder = fresh_folder("run");
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) in_child(path, folder, output, word);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    free(printed);
    printed = read_text(output);
    assert_non_null(printed);
    if (!WIFEXITED(status)) fail_msg("%s was killed by signal %d", path, WTERMSIG(status));
    if (WEXITSTATUS(status)) fail_msg("%s: %d\n%s", path, WEXITSTATUS(status), printed);
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

static double number_after(const char *text)
{
    const char *s = strstr(printed, text);
    char *end;
    if (!s) fail_msg("'%s' is not printed:\n%s", text, printed);
    double value = strtod(s + strlen(text), &end);
    if (end == s + strlen(text)) fail_msg("'%s' is followed by no number:\n%s", text, printed);
    return value;
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
    run(build, "manual", "--told");
    char *told = printed;
    printed = NULL;
    int lines = 0;
    for (const char *s = told; (s = strchr(s, '\n')); s++) lines++;
    assert_true(lines >= 20);
    run(build, "manual", NULL);
    if (strcmp(told, printed))
        fail_msg("docs/cpp.md says\n%s\nbut its snippets print\n%s", told, printed);
    free(told);
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
    return cmocka_run_group_tests(tests, setup, teardown);
}
