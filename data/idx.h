/*
 * IDX, the format of MNIST: bytes 0, 0, type, number of dimensions; the sizes as big-endian 32-bit
 * numbers; the elements in row-major order, big-endian. Read plain or gzip-compressed.
 */
#ifndef EDDY_DATA_IDX_H
#define EDDY_DATA_IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum idx_type {
    IDX_UINT8 = 0x08,
    IDX_INT8 = 0x09,
    IDX_INT16 = 0x0b,
    IDX_INT32 = 0x0c,
    IDX_FLOAT32 = 0x0d,
    IDX_FLOAT64 = 0x0e
};

enum { IDX_DIMS = 8 };

struct idx {
    enum idx_type type;
    int ndim; /* 1 ... IDX_DIMS */
    int64_t shape[IDX_DIMS];
    unsigned char *data; /* the elements in the machine's byte order, from the caller's resize */
    size_t size;         /* their bytes */
};

/* realloc's contract: size 0 frees, NULL old allocates; NULL when there is no memory, and old is
 * still there. */
typedef void *idx_resize(void *old, size_t size);

/*
 * Reads the file into *idx, whose data the caller frees by resize(data, 0). False on failure:
 * nothing is left allocated and error (of room bytes) says in a sentence what is wrong with which
 * file. Refused are: unknown types, no dimensions or more than IDX_DIMS, sizes of 0, more bytes
 * than fit in memory's address range, data that ends early or goes on after the last element,
 * damaged compression. What is allocated at a time is at most 64 KiB or twice what the file held up
 * to there, whatever its header claims.
 */
bool idx_read(const char *path, idx_resize *resize, struct idx *idx, char *error, size_t room);

#endif
