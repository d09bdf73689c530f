/* Programs that tests run as their users do, and what they print. */
#ifndef EDDY_TESTS_CHILDREN_H
#define EDDY_TESTS_CHILDREN_H

#include "tests/folders.h"
#include <fcntl.h>
#include <sys/wait.h>

static char *printed; /* by the last program, both streams */

__attribute__((unused)) static int children_end(void **state)
{
    free(printed);
    return folder_end(state);
}

static void child_becomes(const char *path, const char *folder, const char *input,
                          const char *output, char *const *words)
{
    int from = open(input, O_RDONLY), to = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (from < 0 || to < 0 || dup2(from, 0) < 0 || dup2(to, 1) < 0 || dup2(to, 2) < 0) _exit(126);
    if (chdir(folder)) _exit(126);
    execute(path, words);
    _exit(127);
}

/* A program in a folder, with words that NULL ends and a file or nothing (NULL) as its input; it
 * has to end without a complaint. */
__attribute__((unused)) static void run_program(const char *path, const char *folder,
                                                const char *input, const char *const *words)
{
    const char *all[8] = {path}, *output = in_folder("output");
    for (int i = 0; i < 6 && words[i]; i++) all[i + 1] = words[i];
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        child_becomes(path, folder, input ? input : "/dev/null", output, (char *const *)all);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    free(printed);
    printed = read_text(output);
    assert_non_null(printed);
    if (!WIFEXITED(status)) fail_msg("%s was killed by signal %d", path, WTERMSIG(status));
    if (WEXITSTATUS(status)) fail_msg("%s: %d\n%s", path, WEXITSTATUS(status), printed);
}

/* The number behind the text in what was printed. */
__attribute__((unused)) static double number_after(const char *text)
{
    const char *s = strstr(printed, text);
    char *end;
    if (!s) fail_msg("'%s' is not printed:\n%s", text, printed);
    double value = strtod(s + strlen(text), &end);
    if (end == s + strlen(text)) fail_msg("'%s' is followed by no number:\n%s", text, printed);
    return value;
}

/* A program that tests/manual.awk made of a page: it prints what the page says, at least so many
 * lines. */
__attribute__((unused)) static void run_manual(const char *path, const char *page, int least)
{
    run_program(path, fresh_folder("run"), NULL, (const char *[]){"--told", NULL});
    char *told = printed;
    printed = NULL;
    int lines = 0;
    for (const char *s = told; (s = strchr(s, '\n')); s++) lines++;
    assert_true(lines >= least);
    run_program(path, fresh_folder("run"), NULL, (const char *[]){NULL});
    if (strcmp(told, printed))
        fail_msg("%s says\n%s\nbut its snippets print\n%s", page, told, printed);
    free(told);
}

#endif
