/*
 * ZIP, as .npz files are: the directory at the end, members as streams, and a writer.
 *
 * Sizes come from the directory, ZIP64's too; what stands before the members or behind the
 * directory moves nothing. Members are stored, deflated, or compressed by bzip2 or LZMA; a member's
 * CRC-32 is checked when its last byte is read. No two members may share bytes of the file, so that
 * reading all of them takes time by the file's size.
 */
#ifndef EDDY_IO_ZIP_H
#define EDDY_IO_ZIP_H

#include "io/file.h"

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct zip_member {
    io_span name; /* in the directory's bytes, with no 0 behind it */
    uint16_t flags, method;
    uint32_t crc;
    int64_t packed; /* bytes in the file */
    int64_t size;   /* bytes when unpacked, as the directory claims; for a stored one: packed */
    int64_t header; /* where its local header is in the file */
    int64_t end;    /* where the next member or the directory begins */
} zip_member;

typedef struct zip_directory {
    uint8_t *bytes;
    zip_member *members; /* in the directory's order */
    int64_t count;
} zip_directory;

/* Reads the directory; the error, if there is one, names the file. */
bool zip_open(const io_file *file, zip_directory *directory);
void zip_close(zip_directory *directory);

/*
 * What is wrong with a member, for a sentence: "its checksum is wrong". Members fail alone, often
 * before anybody asked for them, so that this is not kept as the thread's error yet. A NULL `text`:
 * it was kept (memory, reading).
 */
typedef struct zip_fault {
    ed_error_code code;
    const char *text;
} zip_fault;

typedef struct zip_stream zip_stream;

/* The member's bytes from the first; file and member must stay. NULL with *fault. */
zip_stream *zip_begin(const io_file *file, const zip_member *member, zip_fault *fault);

/* Reads up to `want` bytes; *got is less only at the member's end. */
bool zip_read(zip_stream *s, void *to, size_t want, size_t *got, zip_fault *fault);

/* Where the member's first byte is in the file. */
int64_t zip_place(const zip_stream *s);

/* NULL is allowed. */
void zip_end(zip_stream *s);

/* ---- Writing --------------------------------------------------------------------------------- */

/* An archive of stored members on a file that somebody else begins and commits. */
typedef struct zip_writer {
    io_writer *file;
    io_buffer directory;
    int64_t count;
    int64_t limit; /* of what ZIP itself can say; beyond, and at it, ZIP64 does */
} zip_writer;

zip_writer zip_write_on(io_writer *file);

/* Begins a member of exactly `size` bytes, which the caller writes to the file next, and whose
 * CRC-32 is `crc`. They begin at a multiple of 64. Names are UTF-8 of at most 65535 bytes. */
bool zip_add(zip_writer *w, const char *name, int64_t size, uint32_t crc);

/* The directory; frees the writer's memory in any case. */
bool zip_finish(zip_writer *w);

#endif
