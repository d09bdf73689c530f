/* NumPy's .npy, as a file or as a member of an .npz: the header, and reading the bytes after it. */
#ifndef EDDY_IO_NPY_H
#define EDDY_IO_NPY_H

#include "io/archive.h"

/* The maximum rank of NumPy's arrays; longer headers than NumPy reads by default are refused. */
enum { NPY_MAX_RANK = 64, NPY_FIRST = 12, NPY_MAX_HEADER = NPY_FIRST + 10000 };

typedef struct npy_header {
    io_dtype dtype;   /* IO_NONE: `foreign` has it as in the file: "|S3", "<M8[D]", "object" */
    char foreign[24]; /* "structured" for one with named fields */
    bool opaque;      /* the size of an element is unknown, `item` is 0: structured, objects */
    int64_t item;     /* bytes of an element */
    int swapped;      /* bytes of the units that are swapped; 1: none */
    bool fortran;     /* the first axis varies fastest */
    int rank;         /* 0 to NPY_MAX_RANK */
    int64_t shape[NPY_MAX_RANK];
    int64_t size;  /* of the header: the offset of the elements */
    int64_t bytes; /* of the elements; of opaque ones set by the caller, who knows what follows */
} npy_header;

/* Whether these are the first bytes of a .npy. */
bool npy_begins(const void *data, size_t size);

/* Sets the length of the header from the first NPY_FIRST bytes of a file, or fewer if it has
 * fewer: at most NPY_MAX_HEADER. Returns the error, NULL: none. */
const char *npy_measure(const uint8_t *first, size_t n, size_t *size);

/* Parses a header, of which all bytes are given. Returns the error, NULL: none. */
const char *npy_parse(const uint8_t *data, size_t size, npy_header *h);

/* Sets the error for an element type or rank that tensors don't support; returns NULL. `what`
 * begins the sentence. */
void *npy_refuse(const char *what, const npy_header *h);

/* The entry of an archive, without the name. */
archive_entry npy_entry(const npy_header *h);

/* ---- Elements -------------------------------------------------------------------------------- */

/* Whether elements at that offset of a mapped file can be used as a tensor directly. */
bool npy_lies_well(const npy_header *h, int64_t place);

/* The tensor on a mapping; the caller owns the reference. */
ed_tensor *npy_view(const npy_header *h, ed_buffer *map, int64_t place);

/* A tensor to read the elements into, in the file's order; and, after that, the tensor with its
 * dtype and shape: swapped, transposed. npy_settle takes the reference of t. */
ed_tensor *npy_room(const npy_header *h);
ed_tensor *npy_settle(const npy_header *h, ed_tensor *t);

/* Passes the elements as archive_format's `stream` does, strings and dates swapped as numbers,
 * structured ones unchanged; `read` returns the next `size` bytes of the file. Not for objects. */
bool npy_stream(const npy_header *h, bool (*read)(void *from, void *to, size_t size), void *from,
                io_sink *take, void *user);

/* ---- Writing --------------------------------------------------------------------------------- */

/* Writes the header that NumPy 2 writes, whose size is a multiple of 64; false, with nothing
 * written, for a dtype that the format does not have. */
bool npy_put_header(io_buffer *b, io_dtype dtype, int rank, const int64_t *shape);

#endif
