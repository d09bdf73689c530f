/*
 * Other people's file formats: NumPy's .npy and .npz, safetensors, TensorFlow's bundles. Nothing in
 * them is ever run, sizes they claim are never trusted, and what is written appears under its name
 * only when it is complete and on disk (temporary file, fsync, rename, fsync of the folder).
 */
#ifndef EDDY_IO_H
#define EDDY_IO_H

#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* ---- One tensor: .npy ------------------------------------------------------------------------ */

/*
 * The tensor of a .npy file: mapped, not read, where the file's layout allows it (then the file
 * must not be overwritten in place while the tensor lives; replacing it by rename is fine). Fortran
 * order becomes a transposed view; big-endian is swapped. Fails for dtypes that tensors don't have,
 * pickled objects among them (which are never loaded), and for damaged files.
 */
ed_tensor *ed_read_npy(const char *path);

/* Writes a .npy file, row-major; float32[2, 3] as NumPy itself would, bfloat16 as its raw '<V2'. */
bool ed_write_npy(const char *path, ed_tensor *tensor);

/* ---- Many tensors: archives ------------------------------------------------------------------ */

/*
 * A file of named tensors, open for reading: safetensors, .npz, .npy (one tensor, named ""), or a
 * TensorFlow bundle by its prefix or its .index file. Which of them it is shows in the file's own
 * bytes, not in its name. The directory is checked at once, elements when they are asked for.
 */
typedef struct ed_archive ed_archive;
ed_archive *ed_archive_open(const char *path);

/* "safetensors", "npz", "npy", "bundle". */
const char *ed_archive_format(const ed_archive *archive);

/*
 * Number of tensors; name of tensor i in the file's order (i < 0: from the end, here and below);
 * its place by name, -1 if there is none (no error). A zero byte inside a name is shown, and found,
 * as the two characters \0. Names and other texts live as long as the archive.
 */
int64_t ed_archive_count(const ed_archive *archive);
const char *ed_archive_name(const ed_archive *archive, int64_t i);
int64_t ed_archive_find(const ed_archive *archive, const char *name);

/* Dtype as text (also of those that tensors don't have: "complex64", "string"; in an .npz also
 * "structured", "object", "bytes"; "damaged" for an entry of which only the name is known), shape,
 * size in the file in bytes. */
const char *ed_archive_dtype(const ed_archive *archive, int64_t i);
ed_ints ed_archive_shape(const ed_archive *archive, int64_t i);
int64_t ed_archive_bytes(const ed_archive *archive, int64_t i);

/* Tensor i, or by name: ED_NOT_FOUND if there is none; ED_UNIMPLEMENTED for a dtype or rank that
 * tensors don't have; ED_DATA_LOSS for damage. Mapped where the layout allows it. */
ed_tensor *ed_archive_tensor(ed_archive *archive, int64_t i);
ed_tensor *ed_archive_get(ed_archive *archive, const char *name);

/* Checks all that can be checked of tensor i without keeping it: checksums, digests, extents. */
bool ed_archive_verify(ed_archive *archive, int64_t i);

/* XXH3-128 of tensor i's bytes as 32 hexadecimal digits, worked out from the file; the text belongs
 * to the scope. NULL on failure. */
const char *ed_archive_digest(ed_archive *archive, int64_t i);

/* Of safetensors: the text kept under a key in its metadata, NULL (no error) if there is none. A
 * text with a zero byte in it ends there. */
const char *ed_archive_metadata(const ed_archive *archive, const char *key);

/*
 * Writes tensors under names: ed_write_npz("x.npz", "a", a, "b", b). Names are unique and not
 * empty; strided views are written strip by strip, without a copy of the whole. The plain functions
 * take name and tensor in turn, `count` counting both.
 */
#define ed_write_npz(path, ...)                                                                    \
    ed_write_npz_of(path, (const void *const[]){__VA_ARGS__},                                      \
                    sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))
bool ed_write_npz_of(const char *path, const void *const *names_and_tensors, int64_t count);

#define ed_write_safetensors(path, ...)                                                            \
    ed_write_safetensors_of(path, (const void *const[]){__VA_ARGS__},                              \
                            sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))
bool ed_write_safetensors_of(const char *path, const void *const *names_and_tensors, int64_t count);

/* ---- Objects as JSON (io/config.c) ----------------------------------------------------------- */

/*
 * What an object was made from, as JSON: its family, its kind and all of its options, objects among
 * them likewise; not the values of its variables, which checkpoints hold.
 *
 *     {"module": "layer", "class_name": "dense", "config": {"units": 10, "use_bias": true, ...}}
 *
 * Of objects that a kind made (ed_kind): layers, optimizers, initializers, metrics; and of
 * generators. The string belongs to the scope. NULL on failure.
 */
const char *ed_to_json(const void *object);

/*
 * A new object from such JSON, the same as the one that it was written from; options that are left
 * out have their defaults. Fails for text that is not such JSON, for a kind, option or value that
 * does not exist, and for options beyond their limits.
 */
void *ed_from_json(const char *json);

#pragma GCC visibility pop
#endif
