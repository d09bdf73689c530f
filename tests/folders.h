/* Folders that tests make and look into. */
#ifndef EDDY_TESTS_FOLDERS_H
#define EDDY_TESTS_FOLDERS_H

#include "tests/asserts.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder_root[64];

__attribute__((unused)) static int folder_begin(void **unused)
{
    (void)unused;
    strcpy(folder_root, "/dev/shm/eddy_test_XXXXXX"); /* where fsync takes no time */
    if (mkdtemp(folder_root)) return 0;
    strcpy(folder_root, "/tmp/eddy_test_XXXXXX");
    return mkdtemp(folder_root) ? 0 : 1;
}

__attribute__((unused)) static int folder_end(void **unused)
{
    (void)unused;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder_root);
    return system(command);
}

/* A path in the test's folder, one of the last 16 asked for. */
__attribute__((unused, format(printf, 1, 2))) static const char *in_folder(const char *format, ...)
{
    static char paths[16][512];
    static int next;
    char *path = paths[next++ % 16];
    int n = snprintf(path, sizeof paths[0], "%s/", folder_root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + n, sizeof paths[0] - (size_t)n, format, arguments);
    va_end(arguments);
    return path;
}

/* Makes it anew and empty. */
__attribute__((unused)) static const char *fresh_folder(const char *name)
{
    const char *path = in_folder("%s", name);
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", path, path);
    assert_int_equal(system(command), 0);
    return path;
}

__attribute__((unused)) static void write_text(const char *path, const char *content)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(content, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* The file's text, to be freed; NULL if there is none. */
__attribute__((unused)) static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) return NULL;
    char *content = calloc(1, 1 << 16);
    assert_true(fread(content, 1, (1 << 16) - 1, f) < (1 << 16) - 1);
    fclose(f);
    return content;
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The names in the folder but those that begin with a point, sorted by bytes: "a b c". */
__attribute__((unused)) static const char *names_in(const char *path)
{
    static char names[4096];
    struct dirent **entries;
    int n = scandir(path, &entries, is_shown, NULL);
    assert_true(n >= 0);
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && strcmp(entries[j - 1]->d_name, entries[j]->d_name) > 0; j--) {
            struct dirent *swapped = entries[j];
            entries[j] = entries[j - 1];
            entries[j - 1] = swapped;
        }
    *names = 0;
    for (int i = 0; i < n; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? " " : "", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return names;
}

#endif
