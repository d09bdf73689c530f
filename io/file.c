/*
 * Each system call is in a small function that asks for an injected fault first, so that tests can
 * make each call fail; everything else calls these functions.
 *
 * A writer collects small writes in a buffer and passes large ones through. Every few megabytes it
 * makes the system start writing to the disk, so that the final fsync has less to do.
 */
#include "io/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Faults ---------------------------------------------------------------------------------- */

static struct {
    bool armed, repeat;
    io_call call;
    int error;
    int64_t at, count;
} fault;

void io_fault(io_call call, int64_t n, int error, bool repeat)
{
    __atomic_store_n(&fault.armed, false, __ATOMIC_SEQ_CST);
    fault.call = call;
    fault.error = error;
    fault.repeat = repeat;
    fault.at = n;
    if (n < 0) return;
    __atomic_store_n(&fault.count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&fault.armed, true, __ATOMIC_SEQ_CST);
}

int64_t io_fault_count(void)
{
    return __atomic_load_n(&fault.count, __ATOMIC_RELAXED);
}

/* Whether a fault is injected into this call. */
static bool hit(io_call call)
{
    if (!__atomic_load_n(&fault.armed, __ATOMIC_ACQUIRE)) return false;
    if (fault.call != IO_CALL_ANY && fault.call != call) return false;
    int64_t n = __atomic_fetch_add(&fault.count, 1, __ATOMIC_RELAXED);
    return fault.repeat ? n >= fault.at : n == fault.at;
}

/* Whether it fails, with errno set. */
static bool fails(io_call call)
{
    if (!hit(call) || fault.error <= 0) return false;
    errno = fault.error;
    return true;
}

/* The same for a call that moves bytes, which may also be made to move half of them or none. */
static bool moving_fails(io_call call, size_t *size)
{
    if (!hit(call)) return false;
    if (fault.error <= 0) *size = fault.error ? 0 : (*size + 1) / 2;
    errno = fault.error;
    return fault.error > 0;
}

/* ---- The system's calls ---------------------------------------------------------------------- */

static int call_create(const char *path, int flags, mode_t mode)
{
    int descriptor;
    do descriptor = fails(IO_CALL_OPEN) ? -1 : open(path, flags | O_CLOEXEC, mode);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

static int call_open(const char *path, int flags)
{
    return call_create(path, flags, 0666);
}

static ssize_t call_write(int descriptor, const void *data, size_t size)
{
    ssize_t n;
    do n = moving_fails(IO_CALL_WRITE, &size) ? -1 : write(descriptor, data, size);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t call_read(int descriptor, void *to, size_t size, int64_t offset)
{
    ssize_t n;
    do n = moving_fails(IO_CALL_READ, &size) ? -1 : pread(descriptor, to, size, offset);
    while (n < 0 && errno == EINTR);
    return n;
}

/* fsync is repeated after an interruption only; another failure may have dropped data, so a
 * second call could report a false success. */
static int call_fsync(int descriptor)
{
    int result;
    do result = fails(IO_CALL_FSYNC) ? -1 : fsync(descriptor);
    while (result && errno == EINTR);
    return result;
}

/* The descriptor is closed in any case, also after an interruption. */
static int call_close(int descriptor)
{
    int result = close(descriptor);
    if (fails(IO_CALL_CLOSE)) result = -1;
    return result && errno != EINTR ? -1 : 0;
}

static int call_rename(const char *from, const char *to)
{
    return fails(IO_CALL_RENAME) ? -1 : rename(from, to);
}

static int call_unlink(const char *path)
{
    return fails(IO_CALL_UNLINK) ? -1 : unlink(path);
}

static int call_mkdir(const char *path)
{
    return fails(IO_CALL_MKDIR) ? -1 : mkdir(path, 0777);
}

static void *call_map(int descriptor, size_t size)
{
    if (fails(IO_CALL_READ)) return MAP_FAILED;
    return mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
}

static DIR *call_opendir(const char *path)
{
    return fails(IO_CALL_OPEN) ? NULL : opendir(path);
}

/* The next name except . and ..; NULL with errno 0 at the end. */
static const char *call_readdir(DIR *folder)
{
    for (;;) {
        errno = 0;
        struct dirent *entry = fails(IO_CALL_READ) ? NULL : readdir(folder);
        if (!entry) return NULL;
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) return entry->d_name;
    }
}

/* Sets the error of errno: out of memory, or I/O. */
static bool file_fail(const char *who, const char *path, const char *call)
{
    int error = errno;
    ed_error_code code = error == ENOMEM ? ED_OUT_OF_MEMORY : ED_IO;
    return ed_fail(code, "%s: %s: %s: %s", who, path, call, strerror(error)), false;
}

/* ---- Writing --------------------------------------------------------------------------------- */

enum { HELD = 256 << 10, AHEAD = 16 << 20 };

struct io_writer {
    const char *who;
    char *path, *temporary;
    int descriptor; /* -1: sealed */
    bool failed, replaces;
    size_t held;              /* bytes in the buffer */
    int64_t written, started; /* bytes given to the system; those it began to write to the disk */
    uint8_t buffer[HELD];
};

static void free_writer(io_writer *w)
{
    memory_free(w->path);
    memory_free(w->temporary);
    memory_free(w);
}

/* Opens a temporary file that nobody else has. One that is there already was left by a dead process
 * whose PID came again. */
static bool open_temporary(io_writer *w, mode_t mode)
{
    static int64_t number;
    for (int attempt = 0; attempt < 1000; attempt++) {
        int64_t mine = __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED);
        w->temporary = io_text("%s.tmp.%d.%lld", w->path, (int)getpid(), (long long)mine);
        if (!w->temporary) return false;
        w->descriptor = call_create(w->temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (w->descriptor >= 0) return true;
        if (errno != EEXIST) break;
        memory_free(w->temporary);
        w->temporary = NULL;
    }
    return file_fail(w->who, w->path, "open");
}

/* Owner, group and mode of the older file. Where the group can't be kept, its members get no more
 * than everybody. Failures are passed over: the file is never open to more than the older one. */
static void keep_mode(int descriptor, const struct stat *older)
{
    struct stat now;
    mode_t mode = older->st_mode & 07777;
    if (fstat(descriptor, &now)) return;
    if (now.st_gid != older->st_gid && fchown(descriptor, (uid_t)-1, older->st_gid))
        mode &= ~(mode_t)(S_ISGID | S_IRWXG) | (mode & S_IRWXO) << 3;
    if (now.st_uid != older->st_uid && fchown(descriptor, older->st_uid, (gid_t)-1))
        mode &= ~(mode_t)S_ISUID;
    if (mode != (now.st_mode & 07777)) fchmod(descriptor, mode);
}

static bool begin_file(io_writer *w, const char *like)
{
    struct stat older, there;
    bool kept = !stat(like, &older) && S_ISREG(older.st_mode);
    bool any = !lstat(w->path, &there);
    if (any && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode) && !S_ISLNK(there.st_mode))
        return ed_fail(ED_IO, "%s: %s: not a regular file: it is not replaced", w->who, w->path),
               false;
    w->replaces = any;
    if (!open_temporary(w, kept ? older.st_mode & 0777 : 0666)) return false;
    if (kept) keep_mode(w->descriptor, &older);
    return true;
}

/* `path` is a new string, which the writer takes; NULL: an error was kept. */
static io_writer *create(const char *who, char *path, const char *like)
{
    io_writer *w = path ? memory_alloc(sizeof *w) : NULL;
    if (!w) {
        memory_free(path);
        return NULL;
    }
    memset(w, 0, offsetof(io_writer, buffer));
    w->who = who;
    w->path = path;
    if (begin_file(w, like ? like : path)) return w;
    free_writer(w);
    return NULL;
}

/* What a link says, seen from the link's folder; NULL if it is none (no error) or on failure. */
static char *read_link(const char *who, const char *path, bool *fine)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target);
    *fine = n < (ssize_t)sizeof target;
    if (!*fine) ed_fail(ED_IO, "%s: %s: the symbolic link is too long", who, path);
    if (n < 0 || !*fine) return NULL;
    size_t folder = *target == '/' ? 0 : (size_t)(io_name_of(path) - path);
    char *joined = io_text("%.*s%.*s", (int)folder, path, (int)n, target);
    *fine = joined;
    return joined;
}

/* The path behind symbolic links, as a new string, also where the last of them names nothing. */
static char *follow(const char *who, const char *path)
{
    enum { LINKS = 40 };
    struct stat info;
    char *at = text_copy(path);
    bool fine = at;
    for (int i = 0; fine && i < LINKS; i++) {
        char *next = read_link(who, at, &fine);
        if (!next) break;
        memory_free(at);
        at = next;
    }
    if (fine && !lstat(at, &info) && S_ISLNK(info.st_mode)) {
        errno = ELOOP;
        fine = file_fail(who, path, "open");
    }
    if (fine) return at;
    memory_free(at);
    return NULL;
}

io_writer *io_create(const char *who, const char *path)
{
    struct stat info;
    /* Also where the link is one that only the system can follow: /dev/stdout to a pipe. */
    if (!stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return ed_fail(ED_IO, "%s: %s: not a regular file: it is not replaced", who, path);
    return create(who, follow(who, path), NULL);
}

io_writer *io_create_like(const char *who, const char *path, const char *like)
{
    return create(who, text_copy(path), like);
}

static bool writer_fail(io_writer *w, const char *call)
{
    w->failed = true;
    return file_fail(w->who, w->path, call);
}

static bool write_out(io_writer *w, const uint8_t *data, size_t size)
{
    while (size) {
        ssize_t n = call_write(w->descriptor, data, size);
        if (!n) errno = EIO; /* the system writes nothing and gives no reason */
        if (n <= 0) return writer_fail(w, "write");
        data += n;
        size -= (size_t)n;
        w->written += n;
    }
    if (w->written - w->started >= AHEAD) {
        /* A hint: failures are left to fsync. */
        sync_file_range(w->descriptor, w->started, w->written - w->started, SYNC_FILE_RANGE_WRITE);
        w->started = w->written;
    }
    return true;
}

static bool flush(io_writer *w)
{
    size_t held = w->held;
    w->held = 0;
    return write_out(w, w->buffer, held);
}

bool io_write(io_writer *w, const void *data, size_t size)
{
    if (w->failed) return false;
    if (size > HELD - w->held && !flush(w)) return false;
    if (size > HELD) return write_out(w, data, size);
    if (size) memcpy(w->buffer + w->held, data, size);
    w->held += size;
    return true;
}

int64_t io_written(const io_writer *w)
{
    return w->written + (int64_t)w->held;
}

bool io_seal(io_writer *w)
{
    if (w->failed || w->descriptor < 0) return !w->failed;
    if (!flush(w)) return false;
    if (call_fsync(w->descriptor)) return writer_fail(w, "fsync");
    int descriptor = w->descriptor;
    w->descriptor = -1;
    return !call_close(descriptor) || writer_fail(w, "close");
}

static bool is_name(const char *name, void *wanted)
{
    return !strcmp(name, wanted);
}

/* fsync of the file's folder, where temporary files of killed processes are not left. */
static bool finish_folder(io_writer *w)
{
    char *folder = io_folder_of(w->path);
    bool good = folder && io_sync_folder(w->who, folder);
    if (good && w->replaces) io_sweep(folder, is_name, (void *)io_name_of(w->path));
    memory_free(folder);
    return good;
}

/* fsync of the folder that the path lies in. */
static bool sync_folder_of(const char *who, const char *path)
{
    char *folder = io_folder_of(path);
    bool good = folder && io_sync_folder(who, folder);
    memory_free(folder);
    return good;
}

bool io_commit(io_writer *w, bool sync_folder)
{
    if (!io_seal(w) || (call_rename(w->temporary, w->path) && !writer_fail(w, "rename"))) {
        io_discard(w);
        return false;
    }
    bool good = !sync_folder || finish_folder(w);
    free_writer(w);
    return good;
}

bool io_appear_as(io_writer *w, const char *path)
{
    char *copy = text_copy(path);
    if (!copy) return false;
    memory_free(w->path);
    w->path = copy;
    return true;
}

void io_discard(io_writer *w)
{
    if (!w) return;
    if (w->descriptor >= 0) call_close(w->descriptor);
    call_unlink(w->temporary);
    free_writer(w);
}

bool io_write_file(const char *who, const char *path, const void *data, size_t size)
{
    io_writer *w = io_create_like(who, path, path);
    if (!w) return false;
    io_write(w, data, size);
    return io_commit(w, true);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Whether the error of an open means that there is no such file. Names may come from files and
 * be too long. */
static bool is_absence(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

static bool open_regular(io_file *file)
{
    struct stat info;
    /* Opening a pipe must not block. */
    file->descriptor = call_open(file->path, O_RDONLY | O_NONBLOCK);
    if (file->descriptor < 0 && is_absence(errno))
        return ed_fail(ED_NOT_FOUND, "%s: %s: file not found", file->who, file->path), false;
    if (file->descriptor < 0) return file_fail(file->who, file->path, "open");
    if (fstat(file->descriptor, &info)) return file_fail(file->who, file->path, "fstat");
    if (!S_ISREG(info.st_mode))
        return ed_fail(ED_IO, "%s: %s: not a regular file", file->who, file->path), false;
    file->size = info.st_size;
    return true;
}

bool io_open(io_file *file, const char *who, const char *path)
{
    *file = (io_file){.who = who, .path = text_copy(path), .descriptor = -1};
    if (file->path && open_regular(file)) return true;
    io_close(file);
    return false;
}

void io_close(io_file *file)
{
    if (file->descriptor >= 0) call_close(file->descriptor);
    memory_free(file->path);
    *file = (io_file){.descriptor = -1};
}

bool io_is_whole(const io_file *file)
{
    struct stat info;
    if (fstat(file->descriptor, &info)) return file_fail(file->who, file->path, "fstat");
    if (info.st_size >= file->size) return true;
    return ed_fail(ED_DATA_LOSS, "%s: %s: the file was truncated from %lld bytes to %lld",
                   file->who, file->path, (long long)file->size, (long long)info.st_size),
           false;
}

bool io_is_current(const io_file *file)
{
    struct stat opened, named;
    return !fstat(file->descriptor, &opened) && !stat(file->path, &named) &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Reads until nothing of *size is missing, or a call gives nothing or fails: its answer. */
static ssize_t read_on(const io_file *file, int64_t *offset, void *to, size_t *size)
{
    ssize_t n = 1;
    while (*size && n > 0) {
        n = call_read(file->descriptor, to, *size, *offset);
        if (n <= 0) return n;
        to = (char *)to + n;
        *size -= (size_t)n;
        *offset += n;
    }
    return n;
}

bool io_try_read_at(const io_file *file, int64_t offset, void *to, size_t size)
{
    return read_on(file, &offset, to, &size) > 0;
}

bool io_read_at(const io_file *file, int64_t offset, void *to, size_t size)
{
    int64_t left = offset < 0 || offset > file->size ? 0 : file->size - offset;
    if (size <= (size_t)left && read_on(file, &offset, to, &size) < 0)
        return file_fail(file->who, file->path, "read");
    if (!size) return true;
    return ed_fail(ED_DATA_LOSS,
                   "%s: %s: unexpected end of file: %zu bytes are missing at byte %lld", file->who,
                   file->path, size, (long long)offset),
           false;
}

bool io_read_file(const char *who, const char *path, size_t limit, uint8_t **data, size_t *size)
{
    io_file file;
    if (!io_open(&file, who, path)) return false;
    uint8_t *bytes = NULL;
    size_t n = (size_t)file.size;
    if (n > limit)
        ed_fail(ED_DATA_LOSS, "%s: %s: the file has %zu bytes; at most %zu are allowed", who, path,
                n, limit);
    else
        bytes = memory_alloc(n + 1);
    bool good = bytes && io_read_at(&file, 0, bytes, n);
    io_close(&file);
    if (!good) {
        memory_free(bytes);
        return false;
    }
    bytes[n] = 0;
    *data = bytes;
    *size = n;
    return true;
}

static void unmap(void *data, void *size)
{
    munmap(data, (size_t)size);
}

ed_buffer *io_map(const io_file *file)
{
    size_t size = (size_t)file->size;
    if (!size) return memory_buffer(0);
    void *data = call_map(file->descriptor, size);
    if (data == MAP_FAILED) return file_fail(file->who, file->path, "mmap"), NULL;
    ed_buffer *buffer = memory_buffer_wrap(data, unmap, (void *)size);
    if (!buffer) unmap(data, (void *)size);
    return buffer;
}

/* ---- Folders and names ----------------------------------------------------------------------- */

bool io_exists(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISREG(info.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

/* A new folder is durable only after an fsync of the one above it. */
static bool make_folder(const char *who, const char *path)
{
    if (is_folder(path)) return true;
    if (!call_mkdir(path)) return sync_folder_of(who, path);
    int error = errno;
    if (error == EEXIST && is_folder(path)) return true; /* another process was faster */
    errno = error;
    return file_fail(who, path, "mkdir");
}

bool io_make_folders(const char *who, const char *path)
{
    char *part = text_copy(path);
    bool good = part;
    for (char *end = part; good && *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char mark = *end;
        *end = 0;
        good = make_folder(who, part);
        *end = mark;
        end += strspn(end, "/");
    }
    memory_free(part);
    return good;
}

const char *io_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *io_folder_of(const char *path)
{
    size_t n = (size_t)(io_name_of(path) - path);
    if (!n) return text_copy(".");
    while (n > 1 && path[n - 1] == '/') n--;
    char *folder = memory_alloc(n + 1);
    if (!folder) return NULL;
    memcpy(folder, path, n);
    folder[n] = 0;
    return folder;
}

char *io_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0) return ed_fail(ED_INVALID_ARGUMENT, "invalid format '%s'", format);
    char *made = memory_alloc((size_t)n + 1);
    if (!made) return NULL;
    va_start(arguments, format);
    vsnprintf(made, (size_t)n + 1, format, arguments);
    va_end(arguments);
    return made;
}

bool io_each_name(const char *who, const char *folder, bool (*visit)(const char *name, void *user),
                  void *user)
{
    DIR *d = call_opendir(folder);
    if (!d) return errno == ENOENT || file_fail(who, folder, "opendir");
    const char *name;
    while ((name = call_readdir(d)))
        if (!visit(name, user)) break;
    bool good = name || !errno || file_fail(who, folder, "readdir");
    closedir(d);
    return good && !name;
}

bool io_remove(const char *who, const char *path)
{
    return !call_unlink(path) || errno == ENOENT || file_fail(who, path, "unlink");
}

/* Some file systems do not support fsync of a folder and return EINVAL. */
bool io_sync_folder(const char *who, const char *folder)
{
    int descriptor = call_open(folder, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) return file_fail(who, folder, "open");
    bool good = !call_fsync(descriptor) || errno == EINVAL || file_fail(who, folder, "fsync");
    call_close(descriptor);
    return good;
}

/* The position of the digits after a point at the end of the name (which ends at `end`); NULL if
 * there are none. */
static const char *number_before(const char *name, const char *end)
{
    const char *p = end;
    while (p > name && p[-1] >= '0' && p[-1] <= '9') p--;
    return p < end && p > name && p[-1] == '.' ? p : NULL;
}

/* Whether it is NAME.tmp.PID.NUMBER; sets the length of NAME, and PID. */
static bool is_temporary(const char *name, size_t *length, int64_t *pid)
{
    const char *number = number_before(name, name + strlen(name));
    const char *process = number ? number_before(name, number - 1) : NULL;
    if (!process || process - name < 6 || memcmp(process - 5, ".tmp.", 5)) return false;
    *length = (size_t)(process - 5 - name);
    *pid = strtoll(process, NULL, 10);
    return true;
}

static bool is_alive(int64_t pid)
{
    return pid > 0 && pid <= INT32_MAX && (!kill((pid_t)pid, 0) || errno == EPERM);
}

void io_remove_all(const char *folder, bool (*mine)(const char *name, void *user), void *user)
{
    DIR *d = call_opendir(folder);
    if (!d) return;
    for (const char *name; (name = call_readdir(d));)
        if (mine(name, user) && !fails(IO_CALL_UNLINK)) unlinkat(dirfd(d), name, 0);
    closedir(d);
}

typedef struct sweep {
    bool (*mine)(const char *name, void *user);
    void *user;
} sweep;

/* Whether it is a temporary file of a dead process, for a name that is to be swept. */
static bool is_left(const char *name, void *user)
{
    const sweep *s = user;
    char own[sizeof((struct dirent *)0)->d_name];
    size_t length;
    int64_t pid;
    if (!is_temporary(name, &length, &pid) || is_alive(pid)) return false;
    memcpy(own, name, length);
    own[length] = 0;
    return s->mine(own, s->user);
}

void io_sweep(const char *folder, bool (*mine)(const char *name, void *user), void *user)
{
    io_remove_all(folder, is_left, &(sweep){mine, user});
}

/* ---- Locks ----------------------------------------------------------------------------------- */

/* Whether a file in the folder could not be opened because nothing can be written there. */
static bool is_read_only(const char *folder, int error)
{
    return (error == EACCES || error == EROFS) && eaccess(folder, W_OK) &&
           (errno == EACCES || errno == EROFS);
}

static int lock_file(const char *who, const char *folder, const char *path)
{
    int lock = call_open(path, O_RDWR | O_CREAT), error = errno;
    if (lock < 0 && is_read_only(folder, error)) return IO_READ_ONLY;
    errno = error;
    if (lock < 0) return file_fail(who, path, "open"), -1;
    if (!flock(lock, LOCK_EX | LOCK_NB)) return lock;
    if (errno == EWOULDBLOCK)
        ed_fail(ED_FAILED_PRECONDITION, "%s: %s: the lock is held by this or another process", who,
                path);
    else
        file_fail(who, path, "flock");
    call_close(lock);
    return -1;
}

int io_lock(const char *who, const char *folder, const char *name)
{
    char *path = io_text("%s/%s", folder, name);
    int lock = path ? lock_file(who, folder, path) : -1;
    memory_free(path);
    return lock;
}

/* Unlocked explicitly: a child of fork has the same lock open. */
void io_unlock(int lock)
{
    if (lock < 0) return;
    flock(lock, LOCK_UN);
    call_close(lock);
}
