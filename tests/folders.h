/* Folders that tests make and look into, and the files there; the folder with recorded data. */
#ifndef EDDY_TESTS_FOLDERS_H
#define EDDY_TESTS_FOLDERS_H

#include "tests/asserts.h"
#include "tests/skip.h"
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static char folder_root[64];

/* In memory, where fsync takes no time, if there is room for whatever a test may write. */
__attribute__((unused)) static int folder_begin(void **unused)
{
    (void)unused;
    struct statvfs shm;
    const bool roomy = !statvfs("/dev/shm", &shm) && shm.f_bavail * shm.f_frsize >= 1u << 30;
    strcpy(folder_root, "/dev/shm/eddy_test_XXXXXX");
    if (roomy && mkdtemp(folder_root)) return 0;
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

/* A file of the build that the test belongs to: built("lua/eddy"). "" if that can't be told. */
__attribute__((unused)) static const char *built(const char *name)
{
    static char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 128);
    if (n <= 0) return "";
    path[n] = 0;
    strcpy(strrchr(path, '/'), "/../");
    return strncat(path, name, 100);
}

/* execv of a program of the build: by $EMULATOR, a command, where the test itself runs by one. */
__attribute__((unused)) static void execute(const char *path, char *const *words)
{
    enum { MOST = 64 };
    const char *emulator = getenv("EMULATOR"),
               *all[MOST] = {"sh", "-c", "exec $EMULATOR \"$0\" \"$@\"", path};
    if (!emulator || !*emulator) {
        execv(path, words);
        return;
    }
    for (int i = 1, n = 4; words[i] && n + 1 < MOST; i++) all[n++] = words[i];
    execv("/bin/sh", (char *const *)all);
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

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

/* Makes it anew and empty; rm and mkdir would take a shell's time, thousands of times. */
__attribute__((unused)) static const char *fresh_folder(const char *name)
{
    const char *path = in_folder("%s", name);
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS)) assert_int_equal(errno, ENOENT);
    assert_int_equal(mkdir(path, 0777), 0);
    return path;
}

/* The folder that EDDY_DATA names; the test is skipped if it names none. */
__attribute__((unused)) static const char *data_folder(void)
{
    const char *data = getenv("EDDY_DATA");
    if (data) return data;
    skip_since("EDDY_DATA is not set");
    return NULL;
}

/* A path in that folder, one of the last 16 asked for. */
__attribute__((unused, format(printf, 1, 2))) static const char *in_data(const char *format, ...)
{
    static char paths[16][4096];
    static int next;
    char *path = paths[next++ % 16];
    int n = snprintf(path, sizeof paths[0], "%s/", data_folder());
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + n, sizeof paths[0] - (size_t)n, format, arguments);
    va_end(arguments);
    return path;
}

/* As a new file: one that is cut and written again is flushed to the disk by some systems. */
__attribute__((unused)) static void write_bytes(const char *path, const void *bytes, size_t size)
{
    unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* The file's bytes and a zero, to be freed. */
__attribute__((unused)) static void *read_bytes(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is not there", path);
    struct stat about;
    assert_int_equal(fstat(fileno(f), &about), 0);
    *size = (size_t)about.st_size;
    char *bytes = calloc(1, *size + 1);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

__attribute__((unused)) static void write_text(const char *path, const char *content)
{
    write_bytes(path, content, strlen(content));
}

/* The file's text, to be freed; NULL if there is none. */
__attribute__((unused)) static char *read_text(const char *path)
{
    size_t size;
    return access(path, F_OK) ? NULL : read_bytes(path, &size);
}

/* How many files there are in the test's folder but those that begin with a point; with `remove`
 * they are gone then. */
__attribute__((unused)) static int folder_files(bool remove)
{
    int n = 0;
    DIR *d = opendir(folder_root);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        if (remove) unlink(in_folder("%s", e->d_name));
        n++;
    }
    closedir(d);
    return n;
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
