/* The file layer: files that are there whole or not at all, whichever call of the system fails. */
#include "io/checksum.h"
#include "io/dtype.h"
#include "io/file.h"
#include "tests/asserts.h"
#include "tests/noise.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];  /* a folder for one test */
static char path[96]; /* dir/file */

/* ---- Around every test ----------------------------------------------------------------------- */

static int names_in(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

static int files_open(void)
{
    return names_in("/proc/self/fd");
}

typedef struct before {
    int files;
    int64_t bytes;
} before;

static before now(void)
{
    return (before){files_open(), ed_memory_stats().live_bytes};
}

static void same_as(before b)
{
    assert_int_equal(files_open(), b.files);
    assert_int_equal(ed_memory_stats().live_bytes, b.bytes);
}

static before at_begin;

static int begin(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/eddy_file_XXXXXX");
    if (!mkdtemp(dir)) return 1;
    snprintf(path, sizeof path, "%s/file", dir);
    at_begin = now();
    return 0;
}

static int end(void **state)
{
    (void)state;
    char command[96];
    io_fault(IO_CALL_ANY, -1, 0, false);
    ed_memory_fail_at(-1, false);
    same_as(at_begin);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (ed_failed()) print_message("left: %s\n", ed_error());
    return system(command) || ed_failed();
}

static bool holds(const char *file, const void *data, size_t size)
{
    uint8_t *found;
    size_t n;
    assert_true(io_read_file("test", file, SIZE_MAX, &found, &n));
    bool same = n == size && !memcmp(found, data, size) && found[n] == 0;
    memory_free(found);
    return same;
}

/* ---- Writing --------------------------------------------------------------------------------- */

enum { SMALL = 100, LARGE = 300000, ALL = 700000 };

/* A file of ALL bytes in pieces that are held back, fill the buffer exactly, and go through it. */
static bool write_pieces(const uint8_t *p)
{
    io_writer *w = io_create("test", path);
    if (!w) return false;
    size_t at = 0;
    for (size_t size = SMALL; at < ALL; size = size * 7 % (at % 3 ? SMALL : LARGE) + 1) {
        if (size > ALL - at) size = ALL - at;
        io_write(w, p + at, size);
        at += size;
    }
    return io_commit(w, true);
}

static void writes(void **state)
{
    (void)state;
    uint8_t *p = noise(ALL, 4);
    assert_true(write_pieces(p));
    assert_true(holds(path, p, ALL));
    for (size_t n = (256 << 10) - 2; n < (256 << 10) + 3; n++) {
        io_writer *w = io_create("test", path);
        assert_non_null(w);
        assert_true(io_write(w, p, 1));
        assert_true(io_write(w, p + 1, n));
        assert_true(io_write(w, NULL, 0));
        assert_int_equal(io_written(w), n + 1);
        assert_true(io_write(w, p + n + 1, 2));
        assert_int_equal(io_written(w), n + 3);
        assert_true(io_commit(w, false));
        assert_true(holds(path, p, n + 3));
    }
    assert_true(io_write_file("test", path, NULL, 0));
    assert_true(holds(path, "", 0));
    assert_int_equal(names_in(dir), 1);
    free(p);
}

/* Beyond the steps at which the disk is told to begin. */
static void writes_much(void **state)
{
    (void)state;
    enum { MUCH = 40 << 20 };
    uint8_t *p = noise(MUCH, 5);
    assert_true(io_write_file("test", path, p, MUCH));
    assert_true(holds(path, p, MUCH));
    free(p);
}

/* Nothing is seen before the end, and an older file is seen until then. */
static void appears_at_once(void **state)
{
    (void)state;
    assert_true(io_write_file("test", path, "old", 3));
    io_writer *w = io_create("test", path), *gone = io_create("test", path);
    assert_true(w && gone);
    assert_true(io_write(w, "newer", 5) && io_write(gone, "?", 1));
    assert_true(holds(path, "old", 3));
    assert_true(io_seal(w));
    assert_true(io_seal(w));
    assert_true(holds(path, "old", 3));
    assert_int_equal(names_in(dir), 3);
    io_discard(gone);
    assert_int_equal(names_in(dir), 2);
    assert_true(io_commit(w, true));
    assert_true(holds(path, "newer", 5));
    assert_int_equal(names_in(dir), 1);

    w = io_create("test", path);
    assert_true(io_write(w, "x", 1) && io_seal(w));
    io_discard(w);
    io_discard(NULL);
    assert_true(holds(path, "newer", 5));
    assert_int_equal(names_in(dir), 1);
}

/* The calls of one write, counted. */
static int64_t calls_of(io_call call, const uint8_t *p)
{
    io_fault(call, INT64_MAX, EIO, false);
    assert_true(write_pieces(p));
    io_fault(call, -1, 0, false);
    return io_fault_count();
}

/* Every call in turn, and from every call on. */
static void every_call_fails(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EACCES, EMFILE, EDQUOT, EROFS};
    uint8_t *p = noise(ALL, 6);
    int64_t writes = calls_of(IO_CALL_WRITE, p), renames = calls_of(IO_CALL_RENAME, p);
    int64_t all = calls_of(IO_CALL_ANY, p);
    assert_true(writes >= 3);
    assert_int_equal(renames, 1);
    int64_t rename_at = 1 + writes + 2, synced = rename_at + 3; /* the file's, the folder's */
    assert_in_range(all, synced + 1, synced + 20);              /* then what was left is removed */
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
        for (int repeat = 0; repeat < 2; repeat++)
            for (int64_t n = 0; n < all; n++) {
                assert_true(io_write_file("test", path, "old", 3));
                before b = now();
                io_fault(IO_CALL_ANY, n, errors[e], repeat);
                bool good = write_pieces(p);
                io_fault(IO_CALL_ANY, -1, 0, false);
                same_as(b);
                /* The folder was opened to read; that its descriptor closes badly means nothing. */
                assert_int_equal(good, n >= synced);
                if (!good) {
                    assert_non_null(strstr(ed_error(), n > rename_at ? dir : path));
                    failed_with(ED_IO, strerror(errors[e]));
                }
                bool renamed = n > rename_at;
                assert_true(renamed ? holds(path, p, ALL) : holds(path, "old", 3));
                /* Where unlink fails too, the temporary file has to stay. */
                bool stays = repeat && n > 0 && !renamed;
                assert_int_equal(names_in(dir), 1 + stays);
                if (stays) {
                    char command[128];
                    snprintf(command, sizeof command, "rm %s/*.tmp.*", dir);
                    assert_int_equal(system(command), 0);
                }
            }
    free(p);
}

/* What errors say. */
static void errors_name_the_call(void **state)
{
    (void)state;
    static const struct {
        io_call call;
        const char *name;
    } calls[] = {{IO_CALL_OPEN, "open"},
                 {IO_CALL_WRITE, "write"},
                 {IO_CALL_FSYNC, "fsync"},
                 {IO_CALL_CLOSE, "close"},
                 {IO_CALL_RENAME, "rename"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char expected[256];
        snprintf(expected, sizeof expected, "test: %s: %s: No space left on device", path,
                 calls[i].name);
        io_fault(calls[i].call, 0, ENOSPC, false);
        assert_false(io_write_file("test", path, "x", 1));
        assert_string_equal(ed_error(), expected);
        ed_clear_error();
        assert_int_equal(names_in(dir), 0);
    }
    io_fault(IO_CALL_ANY, -1, 0, false);

    /* A system that writes nothing is not asked for ever. */
    io_fault(IO_CALL_WRITE, 0, -1, true);
    assert_false(io_write_file("test", path, "x", 1));
    failed_with(ED_IO, "write: Input/output error");
    assert_int_equal(io_fault_count(), 1);
    assert_int_equal(names_in(dir), 0);

    /* After a failure nothing is done any more, and the first error stays. */
    io_writer *w = io_create("test", path);
    io_fault(IO_CALL_FSYNC, 0, EIO, false);
    assert_true(io_write(w, "x", 1));
    assert_false(io_seal(w));
    assert_false(io_seal(w)); /* a second fsync would succeed */
    assert_false(io_write(w, "x", 1));
    assert_false(io_commit(w, true));
    assert_int_equal(io_fault_count(), 1);
    failed_with(ED_IO, "fsync: Input/output error");
    assert_int_equal(names_in(dir), 0);
}

/* Interruptions and short writes and reads are no failures. */
static void goes_on(void **state)
{
    (void)state;
    static const io_call calls[] = {IO_CALL_OPEN, IO_CALL_WRITE, IO_CALL_FSYNC, IO_CALL_CLOSE,
                                    IO_CALL_READ};
    uint8_t *p = noise(ALL, 7);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int64_t n = 0; n < 4; n++) {
            unlink(path);
            io_fault(calls[i], n, EINTR, false);
            assert_true(write_pieces(p));
            assert_true(holds(path, p, ALL));
        }
    unlink(path);
    io_fault(IO_CALL_ANY, 0, 0, true);
    assert_true(write_pieces(p));
    assert_true(io_fault_count() > 30); /* halves of halves */
    assert_true(holds(path, p, ALL));
    free(p);
}

/* The system's own limits. */
static void real_limits(void **state)
{
    (void)state;
    uint8_t *p = noise(ALL, 8);
    struct rlimit was, less;
    assert_true(io_write_file("test", path, "old", 3));
    before b = now();

    /* The last write that fits is a short one. */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    less = (struct rlimit){500001, was.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &less);
    bool good = write_pieces(p);
    setrlimit(RLIMIT_FSIZE, &was);
    assert_false(good);
    failed_with(ED_IO, "write: File too large");
    same_as(b);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    less = (struct rlimit){0, was.rlim_max};
    setrlimit(RLIMIT_NOFILE, &less);
    good = write_pieces(p);
    setrlimit(RLIMIT_NOFILE, &was);
    assert_false(good);
    failed_with(ED_IO, "open: Too many open files");
    same_as(b);

    char other[400];
    snprintf(other, sizeof other, "%s/no/file", dir);
    assert_null(io_create("test", other));
    failed_with(ED_IO, "open: No such file or directory");
    snprintf(other, sizeof other, "%s/%0300d", dir, 0);
    assert_null(io_create("test", other));
    failed_with(ED_IO, "open: File name too long");
    assert_false(io_write_file("test", dir, "x", 1)); /* a folder has the name */
    failed_with(ED_IO, "rename: Is a directory");
    assert_false(io_write_file("test", "", "x", 1));
    failed_with(ED_IO, "rename: No such file or directory");

    assert_true(holds(path, "old", 3));
    assert_int_equal(names_in(dir), 1);
    free(p);
}

static void no_memory(void **state)
{
    (void)state;
    uint8_t *p = noise(ALL, 9);
    assert_true(io_write_file("test", path, "old", 3));
    bool good = false;
    for (int64_t n = 0; !good; n++) {
        before b = now();
        assert_true(n < 20);
        ed_memory_fail_at(n, false);
        good = write_pieces(p);
        ed_memory_fail_at(-1, false);
        same_as(b);
        assert_int_equal(names_in(dir), 1);
        if (good) break;
        failed_with(ED_OUT_OF_MEMORY, "out of memory");
        /* The folder's name for its fsync is made after the rename. */
        assert_true(holds(path, "old", 3) || (n >= 3 && holds(path, p, ALL)));
    }
    free(p);
}

/* Leftovers of a process that had the same PID are in nobody's way. */
static void names_taken(void **state)
{
    (void)state;
    io_writer *w = io_create("test", path);
    assert_non_null(w);
    char *last = NULL;
    DIR *d = opendir(dir);
    for (struct dirent *entry; (entry = readdir(d));)
        if (strstr(entry->d_name, ".tmp.")) last = strdup(strrchr(entry->d_name, '.') + 1);
    closedir(d);
    assert_non_null(last);
    for (int i = 1; i <= 3; i++) {
        char taken[256];
        snprintf(taken, sizeof taken, "%s.tmp.%d.%lld", path, (int)getpid(), atoll(last) + i);
        FILE *f = fopen(taken, "w");
        fputs("not mine", f);
        fclose(f);
    }
    free(last);
    assert_true(io_write_file("test", path, "first", 5));
    assert_int_equal(names_in(dir), 5); /* it, w's, three that were there */
    assert_true(io_write(w, "second", 6));
    assert_true(io_commit(w, true));
    assert_true(holds(path, "second", 6));
}

static void *write_often(void *data)
{
    for (int i = 0; i < 50; i++)
        if (!io_write_file("test", path, data, ALL)) return data;
    return NULL;
}

static void two_writers(void **state)
{
    (void)state;
    uint8_t *p[2] = {noise(ALL, 10), noise(ALL, 11)};
    pthread_t threads[2];
    void *result[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, write_often, p[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], &result[i]);
    assert_true(!result[0] && !result[1]);
    assert_true(holds(path, p[0], ALL) || holds(path, p[1], ALL));
    assert_int_equal(names_in(dir), 1);
    free(p[0]);
    free(p[1]);
}

/* ---- What stands in the place of a file ------------------------------------------------------ */

static mode_t mode_of(const char *file)
{
    struct stat info;
    assert_int_equal(lstat(file, &info), 0);
    return info.st_mode;
}

static bool write_once(const char *to)
{
    io_writer *w = io_create("test", to);
    return w && (io_write(w, "new", 3), io_commit(w, true));
}

/* The file behind it is written, beside itself, and the link stays. */
static void links_are_followed(void **state)
{
    (void)state;
    char folder[1200], target[1300], link[1300], second[1300];
    snprintf(folder, sizeof folder, "%s/far", dir);
    snprintf(target, sizeof target, "%s/run", folder);
    snprintf(link, sizeof link, "%s/link", dir);
    snprintf(second, sizeof second, "%s/second", dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink("far/run", link), 0);
    assert_int_equal(symlink("link", second), 0);
    assert_true(write_once(second)); /* it names nothing yet */
    assert_true(holds(target, "new", 3));
    assert_true(io_write_file("test", target, "old", 3));
    assert_true(write_once(link));
    assert_true(holds(target, "new", 3));
    assert_true(S_ISLNK(mode_of(link)) && S_ISLNK(mode_of(second)));
    assert_int_equal(names_in(folder), 1);
    /* A file of a set takes the link's place. */
    assert_true(io_write_file("test", link, "set", 3));
    assert_true(S_ISREG(mode_of(link)) && holds(target, "new", 3));
    unlink(link);
    assert_int_equal(symlink("link", link), 0);
    assert_false(write_once(link));
    failed_with(ED_IO, "link");
    unlink(link);
    unlink(second);
    unlink(target);
    rmdir(folder);
}

/* A pipe, a socket, a device: an error, and they stay what they are. */
static void special_files_stay(void **state)
{
    (void)state;
    char pipe_path[1300], socket_path[1300], link[1300];
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", dir);
    snprintf(socket_path, sizeof socket_path, "%s/s", dir);
    snprintf(link, sizeof link, "%s/link", dir);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(mknod(socket_path, S_IFSOCK | 0600, 0), 0);
    assert_int_equal(symlink("pipe", link), 0);
    const char *all[] = {pipe_path, socket_path, link, "/dev/null"};
    for (int i = 0; i < 4; i++) {
        if (i < 3) { /* nothing is risked for a real device */
            assert_false(write_once(all[i]));
            failed_with(ED_IO, "not a regular file");
        }
        mode_t mode = mode_of(all[i]);
        assert_null(io_create("test", all[i]));
        failed_with(ED_IO, "not a regular file");
        assert_int_equal(mode_of(all[i]), mode);
    }
    assert_false(io_write_file("test", pipe_path, "x", 1));
    failed_with(ED_IO, "not a regular file");
    unlink(pipe_path);
    unlink(socket_path);
    unlink(link);
}

/* A file that replaces one is open to those to whom that was; a new one is as the umask says. */
static void modes_are_kept(void **state)
{
    (void)state;
    mode_t mask = umask(022);
    unlink(path);
    assert_true(write_once(path));
    assert_int_equal(mode_of(path) & 07777, 0644);
    static const mode_t modes[] = {0600, 0640, 0666, 0444, 0755};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_true(write_once(path));
        assert_int_equal(mode_of(path) & 07777, modes[i]);
        assert_true(io_write_file("test", path, "set", 3));
        assert_int_equal(mode_of(path) & 07777, modes[i]);
    }
    assert_int_equal(chmod(path, 0600), 0);
    io_writer *w = io_create("test", path);
    char *now = io_text("%s.tmp.%d", path, (int)getpid());
    DIR *d = opendir(dir); /* not even the temporary one is open to others */
    for (struct dirent *e; (e = readdir(d));) {
        char there[1400];
        snprintf(there, sizeof there, "%s/%s", dir, e->d_name);
        if (strstr(there, now)) assert_int_equal(mode_of(there) & 07777, 0600);
    }
    closedir(d);
    memory_free(now);
    io_discard(w);
    umask(mask);
}

/* A file that replaces another removes what killed writers left of it. */
static void replacing_sweeps(void **state)
{
    (void)state;
    assert_true(write_once(path));
    char *left = io_text("%s.tmp.99999999.3", path);
    FILE *f = fopen(left, "w");
    assert_non_null(f);
    fclose(f);
    assert_true(write_once(path));
    assert_false(io_exists(left));
    memory_free(left);
}

/* ---- Sweeping, and processes that die -------------------------------------------------------- */

static bool all_are_mine(const char *name, void *user)
{
    (void)name, (void)user;
    return true;
}

static bool named(const char *name, void *wanted)
{
    return !strcmp(name, wanted);
}

static void make(const char *name)
{
    char there[1200];
    snprintf(there, sizeof there, "%s/%s", dir, name);
    FILE *f = fopen(there, "w");
    assert_non_null(f);
    fclose(f);
}

static bool is_there(const char *name)
{
    char there[1200];
    snprintf(there, sizeof there, "%s/%s", dir, name);
    return io_exists(there);
}

/* A PID that was somebody's. */
static int dead_pid(void)
{
    pid_t child = fork();
    if (!child) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

static void sweeps(void **state)
{
    (void)state;
    char dead[5][64], name[64];
    int pid = dead_pid();
    snprintf(dead[0], 64, "file.tmp.%d.0", pid);
    snprintf(dead[1], 64, "a.tmp.1.2.tmp.%d.17", pid);
    snprintf(dead[2], 64, "file.tmp.99999999.3");              /* larger than any PID is */
    snprintf(dead[3], 64, "file.tmp.%lld.3", (1ll << 32) + 1); /* that of init, were it cut */
    snprintf(dead[4], 64, "file.tmp.0.3");
    char kept[][64] = {"file",
                       "file.tmp",
                       "file.tmp.",
                       "file.tmp..",
                       "file.tmp.1.1",
                       "file.tmp.9999999",
                       "file.tmp.x.1",
                       "file.tmp.9999999.",
                       "9999999.1",
                       "tmp.9999999.1",
                       ".tmp.9999999.1",
                       "file_tmp.9999999.1",
                       "1",
                       "file.tmp.-5.1",
                       "file.tmp.9999999.1x",
                       "file.tmp.9999999.1.bak"};
    enum { KEPT = sizeof kept / sizeof *kept };
    for (int i = 0; i < 5; i++) make(dead[i]);
    for (int i = 0; i < KEPT; i++) make(kept[i]);
    snprintf(name, sizeof name, "file.tmp.%d.5", (int)getpid());
    make(name);

    io_sweep(dir, named, "other");
    assert_int_equal(names_in(dir), 5 + KEPT + 1);
    io_sweep(dir, named, "a.tmp.1.2");
    assert_false(is_there(dead[1]));
    assert_int_equal(names_in(dir), 4 + KEPT + 1);
    io_fault(IO_CALL_UNLINK, 0, EIO, true);
    io_sweep(dir, all_are_mine, NULL);
    assert_int_equal(io_fault_count(), 4);
    assert_int_equal(names_in(dir), 4 + KEPT + 1);
    io_fault(IO_CALL_UNLINK, -1, 0, false);
    io_sweep(dir, all_are_mine, NULL);
    for (int i = 0; i < KEPT; i++)
        if (!is_there(kept[i])) fail_msg("%s is gone", kept[i]);
    assert_true(is_there(name));
    assert_int_equal(names_in(dir), KEPT + 1);

    io_sweep("/tmp/eddy_no_such_folder", all_are_mine, NULL);
    assert_false(ed_failed());
}

/* Killed at any moment, a writer leaves an old file or a new one, and what can be swept. */
static void killed_writers(void **state)
{
    (void)state;
    uint8_t *p[2] = {noise(ALL, 12), noise(ALL, 13)};
    assert_true(io_write_file("test", path, p[0], ALL));
    int interrupted = 0;
    for (int round = 0; round < 40; round++) {
        pid_t child = fork();
        if (!child)
            for (int i = 1;; i = !i)
                if (!io_write_file("test", path, p[i], ALL)) _exit(1);
        usleep(1000 + (unsigned)round * 373);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_true(holds(path, p[0], ALL) || holds(path, p[1], ALL));
        interrupted += names_in(dir) > 1;
        io_sweep(dir, named, "file");
        assert_int_equal(names_in(dir), 1);
    }
    assert_true(interrupted > 0);
    free(p[0]);
    free(p[1]);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void reads(void **state)
{
    (void)state;
    io_file f;
    uint8_t bytes[16], *all;
    size_t size;
    assert_true(io_write_file("test", path, "0123456789", 10));
    assert_true(io_open(&f, "test", path));
    assert_int_equal(f.size, 10);
    assert_true(io_read_at(&f, 0, bytes, 10) && !memcmp(bytes, "0123456789", 10));
    assert_true(io_read_at(&f, 7, bytes, 3) && !memcmp(bytes, "789", 3));
    assert_true(io_read_at(&f, 10, bytes, 0));
    static const struct {
        int64_t offset;
        size_t size;
    } beyond[] = {{0, 11}, {8, 3},         {10, 1},        {11, 1},
                  {-1, 1}, {INT64_MAX, 2}, {INT64_MIN, 1}, {1, SIZE_MAX}};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        assert_false(io_read_at(&f, beyond[i].offset, bytes, beyond[i].size));
        failed_with(ED_DATA_LOSS, "unexpected end of file");
    }
    io_fault(IO_CALL_READ, 0, EIO, false);
    assert_false(io_read_at(&f, 0, bytes, 10));
    failed_with(ED_IO, "read: Input/output error");
    io_fault(IO_CALL_READ, 0, EINTR, false);
    assert_true(io_read_at(&f, 3, bytes, 4) && !memcmp(bytes, "3456", 4));
    io_fault(IO_CALL_READ, 0, 0, true);
    assert_true(io_read_at(&f, 3, bytes, 4) && !memcmp(bytes, "3456", 4));
    io_fault(IO_CALL_READ, 0, -1, true);
    assert_false(io_read_at(&f, 3, bytes, 4));
    failed_with(ED_DATA_LOSS, "unexpected end of file");
    io_fault(IO_CALL_READ, -1, 0, false);
    assert_int_equal(truncate(path, 4), 0); /* by somebody, meanwhile */
    assert_false(io_read_at(&f, 0, bytes, 10));
    failed_with(ED_DATA_LOSS, "6 bytes are missing at byte 4");
    io_close(&f);
    io_close(&f);

    assert_true(io_read_file("test", path, 4, &all, &size));
    assert_int_equal(size, 4);
    memory_free(all);
    assert_false(io_read_file("test", path, 3, &all, &size));
    failed_with(ED_DATA_LOSS, "the file has 4 bytes; at most 3");
    for (int64_t n = 0; n < 2; n++) {
        ed_memory_fail_at(n, false);
        assert_false(io_read_file("test", path, 4, &all, &size));
        failed_with(ED_OUT_OF_MEMORY, "out of memory");
    }
    ed_memory_fail_at(-1, false);
    io_fault(IO_CALL_READ, 0, EIO, false);
    assert_false(io_read_file("test", path, 4, &all, &size));
    failed_with(ED_IO, path);
}

static void opens_files_alone(void **state)
{
    (void)state;
    io_file f;
    assert_false(io_open(&f, "test", path));
    failed_with(ED_NOT_FOUND, "file not found");
    assert_false(io_open(&f, "test", dir));
    failed_with(ED_IO, "not a regular file");
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_false(io_open(&f, "test", path)); /* and doesn't wait for a writer */
    failed_with(ED_IO, "not a regular file");
    assert_false(io_exists(path) || io_exists(dir) || io_exists("/tmp/eddy_no_such_file"));
    io_fault(IO_CALL_OPEN, 0, EMFILE, false);
    assert_false(io_open(&f, "test", "/proc/self/exe"));
    failed_with(ED_IO, "open: Too many open files");
    assert_int_equal(f.descriptor, -1);
}

/* Pages of the process' address space. */
static int64_t pages(void)
{
    long long n;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lld", &n), 1);
    fclose(f);
    return n;
}

static void maps(void **state)
{
    (void)state;
    io_file f;
    assert_true(io_write_file("test", path, NULL, 0));
    assert_true(io_open(&f, "test", path));
    ed_buffer *b = io_map(&f);
    assert_non_null(b);
    memory_buffer_release(b);
    io_close(&f);

    const int64_t size = (int64_t)5 << 30;
    assert_int_equal(truncate(path, size), 0);
    int d = open(path, O_WRONLY);
    assert_int_equal(pwrite(d, "end", 3, size - 3), 3);
    close(d);
    assert_true(io_open(&f, "test", path));
    int64_t held = ed_memory_stats().live_bytes;
    b = io_map(&f);
    io_close(&f); /* it stays without */
    assert_non_null(b);
    assert_true(ed_memory_stats().live_bytes - held < 4096);
    assert_memory_equal((char *)b->data + size - 3, "end", 3);
    assert_int_equal(*(char *)b->data, 0);
    unlink(path);
    assert_memory_equal((char *)b->data + size - 3, "end", 3);
    int64_t mapped = pages();
    memory_buffer_release(b);
    assert_true(mapped - pages() >= size / sysconf(_SC_PAGESIZE));

    assert_true(io_write_file("test", path, "x", 1));
    assert_true(io_open(&f, "test", path));
    io_fault(IO_CALL_READ, 0, ENOMEM, false);
    assert_null(io_map(&f));
    failed_with(ED_OUT_OF_MEMORY, "mmap");
    ed_memory_fail_at(0, false);
    assert_null(io_map(&f));
    failed_with(ED_OUT_OF_MEMORY, "out of memory");
    io_close(&f);
}

/* ---- Folders and names ----------------------------------------------------------------------- */

static void names(void **state)
{
    (void)state;
    static const char *cases[][3] = {
        {"a", ".", "a"},       {"a/b", "a", "b"},  {"/a", "/", "a"},    {"/", "/", ""},
        {"a/b/c", "a/b", "c"}, {"a//b", "a", "b"}, {"//a", "/", "a"},   {"", ".", ""},
        {"a/", "a", ""},       {"./a", ".", "a"},  {"../a", "..", "a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *folder = io_folder_of(cases[i][0]);
        assert_string_equal(folder, cases[i][1]);
        assert_string_equal(io_name_of(cases[i][0]), cases[i][2]);
        memory_free(folder);
        ed_memory_fail_at(0, false);
        assert_null(io_folder_of(cases[i][0]));
        failed_with(ED_OUT_OF_MEMORY, "out of memory");
    }
    char *made = io_text("%s-%05d", "x", 7);
    assert_string_equal(made, "x-00007");
    memory_free(made);
    made = io_text("%5000s", "");
    assert_int_equal(strlen(made), 5000);
    memory_free(made);
    ed_memory_fail_at(0, false);
    assert_null(io_text("x"));
    failed_with(ED_OUT_OF_MEMORY, "out of memory");
}

static void makes_folders(void **state)
{
    (void)state;
    char folder[128], odd[160];
    snprintf(folder, sizeof folder, "%s/a/b/c", dir);
    snprintf(odd, sizeof odd, "%s//a/./b//d//", dir);
    io_fault(IO_CALL_MKDIR, INT64_MAX, EIO, false);
    assert_true(io_make_folders("test", folder));
    assert_true(io_make_folders("test", folder));
    assert_int_equal(io_fault_count(), 3);
    assert_true(io_make_folders("test", odd));
    assert_true(io_make_folders("test", "/"));
    assert_int_equal(io_fault_count(), 4);
    snprintf(odd, sizeof odd, "%s/a/b", dir);
    assert_int_equal(names_in(odd), 2);

    /* On the disk, as its files will be. */
    io_fault(IO_CALL_FSYNC, 0, EIO, false);
    snprintf(odd, sizeof odd, "%s/e", dir);
    assert_false(io_make_folders("test", odd));
    failed_with(ED_IO, "fsync");
    io_fault(IO_CALL_MKDIR, 1, ENOSPC, false);
    snprintf(odd, sizeof odd, "%s/f/g/h", dir);
    assert_false(io_make_folders("test", odd));
    failed_with(ED_IO, "f/g: mkdir: No space left on device");
    io_fault(IO_CALL_MKDIR, -1, 0, false);

    assert_true(io_write_file("test", path, "x", 1));
    assert_false(io_make_folders("test", path));
    failed_with(ED_IO, "file: mkdir: File exists");
    snprintf(odd, sizeof odd, "%s/more", path);
    assert_false(io_make_folders("test", odd));
    failed_with(ED_IO, "file: mkdir: File exists");
    bool good = false;
    for (int64_t n = 0; !good; n++) {
        snprintf(odd, sizeof odd, "%s/m%d/n", dir, (int)n);
        ed_memory_fail_at(n, false);
        good = io_make_folders("test", odd);
        ed_memory_fail_at(-1, false);
        if (!good) failed_with(ED_OUT_OF_MEMORY, "out of memory");
        assert_true(n < 9);
    }
}

static bool count_names(const char *name, void *count)
{
    assert_true(strcmp(name, ".") && strcmp(name, ".."));
    return ++*(int *)count < 5;
}

static void lists_names(void **state)
{
    (void)state;
    int count = 0;
    assert_true(io_each_name("test", dir, count_names, &count));
    assert_int_equal(count, 0);
    make("a"), make(".b"), make("...");
    assert_true(io_each_name("test", dir, count_names, &count));
    assert_int_equal(count, 3);
    assert_false(io_each_name("test", dir, count_names, &count)); /* stopped at the second */
    assert_int_equal(count, 5);
    assert_false(ed_failed());
    assert_true(io_each_name("test", "/tmp/eddy_no_such_folder", count_names, &count));
    assert_int_equal(count, 5);
    count = -100;
    assert_false(io_each_name("test", "/dev/null", count_names, &count));
    failed_with(ED_IO, "/dev/null: opendir: Not a directory");
    for (int64_t n = 0; n < 3; n++) {
        io_fault(IO_CALL_READ, n, EIO, false);
        assert_false(io_each_name("test", dir, count_names, &count));
        failed_with(ED_IO, "readdir: Input/output error");
    }
}

static void removes(void **state)
{
    (void)state;
    assert_true(io_remove("test", path));
    make("file");
    io_fault(IO_CALL_UNLINK, 0, EACCES, false);
    assert_false(io_remove("test", path));
    failed_with(ED_IO, "file: unlink: Permission denied");
    assert_true(io_remove("test", path));
    assert_int_equal(names_in(dir), 0);
    assert_false(io_remove("test", dir));
    failed_with(ED_IO, "unlink: Is a directory");

    assert_true(io_sync_folder("test", dir));
    assert_false(io_sync_folder("test", "/tmp/eddy_no_such_folder"));
    failed_with(ED_IO, "open: No such file or directory");
    io_fault(IO_CALL_FSYNC, 0, EINVAL, false); /* a file system that knows no such thing */
    assert_true(io_sync_folder("test", dir));
}

/* ---- Locks ----------------------------------------------------------------------------------- */

/* Whether another process can lock. */
static bool another_can_lock(void)
{
    pid_t child = fork();
    if (!child) {
        int lock = io_lock("test", dir, "lock");
        _exit(lock >= 0 ? 1 : ed_error_kind() == ED_FAILED_PRECONDITION ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status);
}

static void locks(void **state)
{
    (void)state;
    assert_true(another_can_lock());
    int lock = io_lock("test", dir, "lock");
    assert_true(lock >= 0);
    assert_int_equal(io_lock("test", dir, "lock"), -1);
    failed_with(ED_FAILED_PRECONDITION, "/lock: ");
    int other = io_lock("test", dir, "other");
    assert_true(other >= 0);
    assert_false(another_can_lock());
    io_unlock(other);
    assert_false(another_can_lock());
    io_unlock(lock);
    io_unlock(-1);
    assert_true(another_can_lock());
    lock = io_lock("test", dir, "lock");
    assert_true(lock >= 0);

    /* A child that lives on has the descriptor too, and is in nobody's way. */
    int stop[2];
    assert_int_equal(pipe(stop), 0);
    pid_t child = fork();
    if (!child) {
        char byte;
        close(stop[1]);
        _exit((int)read(stop[0], &byte, 1));
    }
    io_unlock(lock);
    assert_true(another_can_lock());
    close(stop[0]);
    close(stop[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);

    io_fault(IO_CALL_OPEN, 0, EACCES, false);
    assert_int_equal(io_lock("test", dir, "lock"), -1);
    failed_with(ED_IO, "open: Permission denied");
    assert_int_equal(io_lock("test", "/tmp/eddy_no_such_folder", "lock"), -1);
    failed_with(ED_IO, "open: No such file or directory");
    ed_memory_fail_at(0, false);
    assert_int_equal(io_lock("test", dir, "lock"), -1);
    failed_with(ED_OUT_OF_MEMORY, "out of memory");
}

/* A lock ends with its process, however that ends. */
static void locks_of_the_dead(void **state)
{
    (void)state;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail before it kills it */
        bool locked = io_lock("test", dir, "lock") >= 0;
        if (write(ready[1], locked ? "y" : "n", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(io_lock("test", dir, "lock"), -1);
    failed_with(ED_FAILED_PRECONDITION, "held by this or another process");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    int lock = io_lock("test", dir, "lock");
    assert_true(lock >= 0);
    io_unlock(lock);
    close(ready[0]);
    close(ready[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writes),
        TEST(writes_much),
        TEST(appears_at_once),
        TEST(every_call_fails),
        TEST(errors_name_the_call),
        TEST(goes_on),
        TEST(real_limits),
        TEST(no_memory),
        TEST(names_taken),
        TEST(two_writers),
        TEST(links_are_followed),
        TEST(special_files_stay),
        TEST(modes_are_kept),
        TEST(replacing_sweeps),
        TEST(sweeps),
        TEST(killed_writers),
        TEST(reads),
        TEST(opens_files_alone),
        TEST(maps),
        TEST(names),
        TEST(makes_folders),
        TEST(lists_names),
        TEST(removes),
        TEST(locks),
        TEST(locks_of_the_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
