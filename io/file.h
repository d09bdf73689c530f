/*
 * The file layer: the only place with system calls for files of users' data.
 *
 * A file is written under a temporary name beside its own, NAME.tmp.PID.NUMBER, and appears under
 * its own when it is complete and on disk: write, fsync, rename, fsync of the folder. Whatever
 * fails on the way is an error that names the file and the call; the temporary file is removed, and
 * an older file of the name stays as it was. A file that replaces an older one has its mode and, as
 * far as the system lets it, its owner and group; temporary files that killed processes left of it
 * are removed. What is there and no regular file (a device, a pipe, a socket) is never replaced:
 * ED_IO.
 *
 * Tests make any of these calls fail: io_fault.
 */
#ifndef EDDY_IO_FILE_H
#define EDDY_IO_FILE_H

#include "io/bytes.h"
#include "tensor/core.h"

/* ---- Writing --------------------------------------------------------------------------------- */

typedef struct io_writer io_writer;

/* Begins a file; `who` (a text that stays) begins errors: "who: PATH: write: No space left on
 * device". A symbolic link is followed: the file that it names is written. NULL on failure. */
io_writer *io_create(const char *who, const char *path);

/* The same for a file of a set: a symbolic link is replaced, not followed, and the mode is that of
 * the file `like`, where it exists. */
io_writer *io_create_like(const char *who, const char *path, const char *like);

/* Appends; short writes and interruptions are gone on from. After a failure all further calls do
 * nothing and give false. */
bool io_write(io_writer *w, const void *data, size_t size);

/* The offset of the next byte: the number of bytes written. */
int64_t io_written(const io_writer *w);

/* fsync and close, still under the temporary name: for several files that are renamed one after
 * the other. */
bool io_seal(io_writer *w);

/* Seals the file if that was not done, renames it and (with `sync_folder`) fsyncs the folder;
 * frees the writer in any case. On failure the file is removed as by io_discard, unless only the
 * folder's fsync failed: then the file has its name, but may lose it in a power cut. */
bool io_commit(io_writer *w, bool sync_folder);

/* The file will appear under another path, of the same folder. */
bool io_appear_as(io_writer *w, const char *path);

/* Gives the file up: closes, unlinks, frees. NULL is allowed. */
void io_discard(io_writer *w);

/* A whole file at once; a symbolic link is replaced. */
bool io_write_file(const char *who, const char *path, const void *data, size_t size);

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct io_file {
    const char *who;
    char *path;
    int descriptor;
    int64_t size;
} io_file;

/* Whether an error of a reader means that the file is missing or damaged. */
static inline bool io_is_loss(ed_error_code code)
{
    return code == ED_NOT_FOUND || code == ED_DATA_LOSS;
}

/* Opens a regular file for reading. ED_NOT_FOUND if there is none, ED_IO for other failures. */
bool io_open(io_file *file, const char *who, const char *path);
void io_close(io_file *file);

/* ED_DATA_LOSS if the file has become shorter since it was opened. */
bool io_is_whole(const io_file *file);

/* Whether its path still names the file that is open, and not one that replaced it. */
bool io_is_current(const io_file *file);

/* Exactly `size` bytes from `offset`; fewer there: ED_DATA_LOSS. */
bool io_read_at(const io_file *file, int64_t offset, void *to, size_t size);

/* The same for helper threads: returns false without an error. */
bool io_try_read_at(const io_file *file, int64_t offset, void *to, size_t size);

/* Reads a whole file of at most `limit` bytes (ED_DATA_LOSS if it has more), and appends a 0;
 * memory_free frees data. */
bool io_read_file(const char *who, const char *path, size_t limit, uint8_t **data, size_t *size);

/* The file's bytes in memory, read only, as long as the buffer that is returned (with one
 * reference; data points at the first byte; an empty file gives a buffer all the same).
 * Where the file becomes shorter later, reading what it lost ends the process: io_is_whole is asked
 * before bytes are given to users. */
ed_buffer *io_map(const io_file *file);

/* ---- Folders and names ----------------------------------------------------------------------- */

/* Whether a regular file of that name exists. */
bool io_exists(const char *path);

/* Creates the folder and the missing ones above it. */
bool io_make_folders(const char *who, const char *path);

/* The folder of a path, "." if it has none; and the rest. memory_free frees the first. */
char *io_folder_of(const char *path);
const char *io_name_of(const char *path);

/* printf into a new string; memory_free frees it. NULL if memory is short. */
char *io_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Calls visit for each name in the folder except . and ..; stops if it returns false, and
 * returns that without an error of its own. A folder that does not exist has no names. */
bool io_each_name(const char *who, const char *folder, bool (*visit)(const char *name, void *user),
                  void *user);

/* Removes a file; it is not an error if it does not exist. */
bool io_remove(const char *who, const char *path);

/* fsync of a folder: makes created and removed names durable. */
bool io_sync_folder(const char *who, const char *folder);

/* Removes the files of the folder that `mine` accepts. Failures are passed over. */
void io_remove_all(const char *folder, bool (*mine)(const char *name, void *user), void *user);

/* Removes temporary files of this layer that no living process is writing (NAME.tmp.PID.NUMBER with
 * such a PID) and whose NAME `mine` accepts. Failures are passed over: they will be met again. */
void io_sweep(const char *folder, bool (*mine)(const char *name, void *user), void *user);

/* ---- Locks ----------------------------------------------------------------------------------- */

/*
 * A lock on a folder's file `name`, held until io_unlock or the process' end: -1 with
 * ED_FAILED_PRECONDITION if another process or this one holds it. IO_READ_ONLY, without an error,
 * if no file can be written in the folder.
 */
enum { IO_READ_ONLY = -2 };
int io_lock(const char *who, const char *folder, const char *name);
void io_unlock(int lock);

/* ---- Faults, for tests ----------------------------------------------------------------------- */

typedef enum io_call {
    IO_CALL_OPEN,
    IO_CALL_WRITE,
    IO_CALL_FSYNC,
    IO_CALL_CLOSE,
    IO_CALL_RENAME,
    IO_CALL_UNLINK,
    IO_CALL_READ,
    IO_CALL_MKDIR,
    IO_CALL_ANY
} io_call;

/*
 * Makes system call number n from now (0: the next) of that kind fail with `error` (an errno; 0: a
 * write or read moves half of the bytes, -1: none, without an error); with `repeat` all later ones
 * too. A negative n switches it off. Process-wide; io_fault_count returns the number of calls of
 * the kind since then.
 */
void io_fault(io_call call, int64_t n, int error, bool repeat);
int64_t io_fault_count(void);

#endif
