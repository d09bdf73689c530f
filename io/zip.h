/*
 * ZIP, as used by .npz files: the directory at the end, members as streams, and a writer.
 *
 * Sizes are those of the directory, also ZIP64's; bytes before the members or after the directory
 * are ignored. Members are stored, deflated, or compressed by bzip2 or LZMA; a member's CRC-32 is
 * verified at its last byte. Members must not overlap in the file, so reading all of them takes
 * time proportional to the file's size.
 */
#ifndef EDDY_IO_ZIP_H
#define EDDY_IO_ZIP_H

#include "io/file.h"

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct zip_member {
    io_span name; /* bytes of the directory, without a 0 at the end */
    uint16_t flags, method;
    uint32_t crc;
    int64_t packed; /* bytes in the file */
    int64_t size;   /* bytes when unpacked, as the directory claims; of a stored one: packed */
    int64_t header; /* the offset of its local header in the file */
    int64_t end;    /* the offset of the next member or of the directory */
} zip_member;

typedef struct zip_directory {
    uint8_t *bytes;
    zip_member *members; /* in the directory's order */
    int64_t count;
} zip_directory;

/* Reads the directory; an error names the file. */
bool zip_open(const io_file *file, zip_directory *directory);
void zip_close(zip_directory *directory);

/* The error of a member, as a part of a sentence: "its checksum is wrong". A damaged member may
 * never be used, so this is not the thread's error yet. A NULL `text`: the error is set already
 * (memory, reading). */
typedef struct zip_fault {
    ed_error_code code;
    const char *text;
} zip_fault;

typedef struct zip_stream zip_stream;

/* Opens the member at its first byte; file and member must stay. NULL with *fault. */
zip_stream *zip_begin(const io_file *file, const zip_member *member, zip_fault *fault);

/* Reads up to `want` bytes; *got is less only at the member's end. */
bool zip_read(zip_stream *s, void *to, size_t want, size_t *got, zip_fault *fault);

/* The offset of the member's first byte in the file. */
int64_t zip_place(const zip_stream *s);

/* NULL is allowed. */
void zip_end(zip_stream *s);

/* ---- Writing --------------------------------------------------------------------------------- */

/* An archive of stored members in a file that the caller begins and commits. */
typedef struct zip_writer {
    io_writer *file;
    io_buffer directory;
    int64_t count;
    int64_t limit; /* numbers from this one on need ZIP64 */
} zip_writer;

zip_writer zip_write_on(io_writer *file);

/* Begins a member of exactly `size` bytes with CRC-32 `crc`, which the caller writes to the file
 * next. They begin at a multiple of 64. Names are UTF-8 of at most 65535 bytes. */
bool zip_add(zip_writer *w, const char *name, int64_t size, uint32_t crc);

/* Writes the directory; frees the writer's memory in any case. */
bool zip_finish(zip_writer *w);

#endif
