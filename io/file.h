/*
 * The file layer: the only place that calls the system for files that hold users' work.
 *
 * A file is written under a temporary name beside its own, NAME.tmp.PID.NUMBER, and appears under
 * its own when it is complete and on disk: write, fsync, rename, fsync of the folder. Whatever
 * fails on the way is an error that names the file and the call; the temporary file is removed, and
 * an older file of the name stays as it was.
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
 * device". NULL on failure. */
io_writer *io_create(const char *who, const char *path);

/* Appends; short writes and interruptions are gone on from. After a failure all further calls do
 * nothing and give false. */
bool io_write(io_writer *w, const void *data, size_t size);

/* Where the next byte goes: the number of those written. */
int64_t io_written(const io_writer *w);

/* fsync and close, the name still being the temporary one: for several files that are to appear one
 * after the other. */
bool io_seal(io_writer *w);

/* Seals it if that was not done, renames it to its own name and (with `sync_folder`) fsyncs the
 * folder; frees the writer in any case. On failure the file is gone as by io_discard, unless it was
 * the folder's fsync that failed: then the file has its name already, and no power cut is promised
 * to leave it there. */
bool io_commit(io_writer *w, bool sync_folder);

/* Gives the file up: closes, unlinks, frees. NULL is allowed. */
void io_discard(io_writer *w);

/* A whole file at once. */
bool io_write_file(const char *who, const char *path, const void *data, size_t size);

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct io_file {
    const char *who;
    char *path;
    int descriptor;
    int64_t size;
} io_file;

/* Whether an error of a reader says that the file is missing or damaged. */
static inline bool io_is_loss(ed_error_code code)
{
    return code == ED_NOT_FOUND || code == ED_DATA_LOSS;
}

/* Opens a regular file for reading. ED_NOT_FOUND if there is none, ED_IO otherwise. */
bool io_open(io_file *file, const char *who, const char *path);
void io_close(io_file *file);

/* Exactly `size` bytes from `offset`; fewer there: ED_DATA_LOSS. */
bool io_read_at(const io_file *file, int64_t offset, void *to, size_t size);

/* The same for threads that help others: says so by false only and keeps no error. */
bool io_try_read_at(const io_file *file, int64_t offset, void *to, size_t size);

/* All of a file that holds at most `limit` bytes (ED_DATA_LOSS beyond), and a 0 behind it;
 * memory_free gives data back. */
bool io_read_file(const char *who, const char *path, size_t limit, uint8_t **data, size_t *size);

/* The file's bytes in memory, read only, as long as the buffer that is returned (with one
 * reference; data points at the first byte; an empty file gives a buffer all the same). */
ed_buffer *io_map(const io_file *file);

/* ---- Folders and names ----------------------------------------------------------------------- */

/* Whether a regular file of that name is there. */
bool io_exists(const char *path);

/* Makes the folder and those above it that are missing. */
bool io_make_folders(const char *who, const char *path);

/* The folder a path lies in, "." if it names none; the rest. memory_free gives the first back. */
char *io_folder_of(const char *path);
const char *io_name_of(const char *path);

/* printf into a new text; memory_free gives it back. NULL without memory. */
char *io_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Calls visit for every name in the folder but . and ..; false stops, and is returned without an
 * error of its own. A folder that is not there has none. */
bool io_each_name(const char *who, const char *folder, bool (*visit)(const char *name, void *user),
                  void *user);

/* Removes a file; one that is not there is no failure. */
bool io_remove(const char *who, const char *path);

/* fsync of a folder: names given and taken in it are on disk. */
bool io_sync_folder(const char *who, const char *folder);

/* Removes temporary files of this layer that no living process is writing (NAME.tmp.PID.NUMBER with
 * such a PID) and whose NAME `mine` accepts. Failures are passed over: they will be met again. */
void io_sweep(const char *folder, bool (*mine)(const char *name, void *user), void *user);

/* ---- Locks ----------------------------------------------------------------------------------- */

/*
 * A lock on a folder's file `name`, held until io_unlock or the process' end: -1 with
 * ED_FAILED_PRECONDITION if another process or this one holds it.
 */
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
 * System call number n from now (0: the next) of that kind fails with `error` (an errno; 0: a write
 * or read does half of what was asked, -1: nothing of it, and neither says that anything is wrong);
 * with `repeat` every one after it too. A negative n switches it off. Process-wide; io_fault_count
 * tells how many calls of the kind were made since.
 */
void io_fault(io_call call, int64_t n, int error, bool repeat);
int64_t io_fault_count(void);

#endif
