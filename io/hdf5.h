/*
 * HDF5 files in memory, by libhdf5: groups and tensors, as Keras' files of weights have them.
 *
 * libhdf5 is an optional part of the library. Where it was left out, h5_open and h5_create fail
 * with ED_UNIMPLEMENTED and say which package is missing.
 *
 * Of a file that is read only what such files have is accepted: groups by plain links, tensors of
 * little-endian numbers whose elements lie in the file in one piece. So nothing else that a file
 * may ask of libhdf5 happens: no filters and plugins, no other files, no conversions.
 */
#ifndef EDDY_IO_HDF5_H
#define EDDY_IO_HDF5_H

#include "io/bytes.h"
#include "tensor/tensor.h"

typedef struct h5_file h5_file;

/* A path that is NULL, as there was no memory for it, fails without a further error. */

/* Whether the library was built with libhdf5. */
bool h5_is_here(void);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Opens a file whose bytes are at `image`, which may go afterwards. `name` begins errors. NULL on
 * failure. */
h5_file *h5_open(const char *name, const void *image, size_t size);

/* The number of members of the group; 0 if there is none of that path; -1, with an error. */
int64_t h5_count(const h5_file *file, const char *path);

/* The tensor of that path, which belongs to the scope; NULL, with an error, if there is none. */
ed_tensor *h5_read(const h5_file *file, const char *path);

/* ---- Writing --------------------------------------------------------------------------------- */

/* A new file; NULL on failure. */
h5_file *h5_create(const char *name);

/* Adds a group with those above it; `named`, if not NULL, is its attribute "name". */
bool h5_add_group(h5_file *file, const char *path, const char *named);

/* Adds a tensor, or a variable's present value, and the groups above it. */
bool h5_write(h5_file *file, const char *path, const ed_tensor *tensor);

/* Appends the file's bytes to the buffer. */
bool h5_image(h5_file *file, io_buffer *b);

/* Gives the file up; NULL is allowed. */
void h5_close(h5_file *file);

#endif
