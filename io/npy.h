/*
 * NumPy's .npy, alone in a file or as a member of an .npz: the header, and what becomes of the
 * bytes behind it.
 */
#ifndef EDDY_IO_NPY_H
#define EDDY_IO_NPY_H

#include "io/archive.h"

/* As many as NumPy's arrays; headers longer than it reads by itself are refused. */
enum { NPY_MAX_RANK = 64, NPY_FIRST = 12, NPY_MAX_HEADER = NPY_FIRST + 10000 };

typedef struct npy_header {
    io_dtype dtype;   /* IO_NONE: `foreign` says it, as the file does: "|S3", "<M8[D]", "object" */
    char foreign[24]; /* "structured" for those of named fields */
    bool opaque;      /* size of an element unknown, `item` is 0: structured, objects */
    int64_t item;     /* bytes of an element */
    int swapped;      /* bytes of what is to be reversed; 1: nothing */
    bool fortran;     /* the first axis is the one that runs fastest */
    int rank;         /* 0 to NPY_MAX_RANK */
    int64_t shape[NPY_MAX_RANK];
    int64_t size;  /* of the header: where the elements begin */
    int64_t bytes; /* of the elements; of opaque ones to be set by whoever knows what follows */
} npy_header;

/* Whether these bytes begin a .npy. */
bool npy_begins(const void *data, size_t size);

/* How long the header is, from the first NPY_FIRST bytes of a file or as many as it has: at most
 * NPY_MAX_HEADER. Returns what is wrong, NULL: nothing. */
const char *npy_measure(const uint8_t *first, size_t n, size_t *size);

/* Reads a header, all of its bytes given. Returns what is wrong, NULL: nothing. */
const char *npy_parse(const uint8_t *data, size_t size, npy_header *h);

/* Keeps the error that says why there is no such tensor, for element types and ranks that tensors
 * don't have: NULL. `what` begins the sentence. */
void *npy_refuse(const char *what, const npy_header *h);

/* The entry of an archive, all but the name. */
archive_entry npy_entry(const npy_header *h);

/* ---- Elements -------------------------------------------------------------------------------- */

/* Whether elements from that place on of a mapped file can be a tensor as they lie. */
bool npy_lies_well(const npy_header *h, int64_t place);

/* The tensor on a mapping, owned by nobody yet. */
ed_tensor *npy_view(const npy_header *h, ed_buffer *map, int64_t place);

/* A tensor for the elements to be read into in the file's order, and, when that is done, the tensor
 * that they are: swapped, transposed. npy_settle takes t over. */
ed_tensor *npy_room(const npy_header *h);
ed_tensor *npy_settle(const npy_header *h, ed_tensor *t);

/* Hands the elements on as archive_format's `stream` does, texts and dates swapped as numbers are,
 * structured ones as they lie; `read` gives the next `size` bytes of the file each time. Not for
 * objects. */
bool npy_stream(const npy_header *h, bool (*read)(void *from, void *to, size_t size), void *from,
                io_sink *take, void *user);

/* ---- Writing --------------------------------------------------------------------------------- */

/* Puts the header that NumPy 2 writes, whose size is a multiple of 64; false, with nothing put, for
 * a dtype that the format doesn't have. */
bool npy_put_header(io_buffer *b, io_dtype dtype, int rank, const int64_t *shape);

#endif
