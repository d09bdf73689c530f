/*
 * Files of other programs' formats: NumPy's .npy and .npz, safetensors, TensorFlow's bundles;
 * objects as JSON. Nothing in a file is ever executed, and no size in a file is trusted. A written
 * file appears under its name only when it is complete and on disk (temporary file, fsync, rename,
 * fsync of the folder). A file that replaces an older one keeps its mode. A symbolic link is
 * followed, but those of a bundle's files are replaced. Devices, pipes and sockets are not written:
 * ED_IO.
 */
#ifndef EDDY_IO_H
#define EDDY_IO_H

#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* ---- One tensor: .npy ------------------------------------------------------------------------ */

/*
 * The tensor of a .npy file: mapped, not read, where the file's layout allows it (the file must
 * then not be overwritten or truncated in place while the tensor lives: its values would change, or
 * a read beyond the new end would end the process by SIGBUS; replacing it by rename is fine).
 * Fortran order becomes a transposed view; big-endian elements are swapped. Fails for dtypes that
 * tensors don't support, pickled objects among them (which are never loaded), and for damaged
 * files.
 */
ed_tensor *ed_read_npy(const char *path);

/* Writes a .npy file, row-major; float32[2, 3] as NumPy itself would, bfloat16 as its raw '<V2'. */
bool ed_write_npy(const char *path, ed_tensor *tensor);

/*
 * For tests: whether x is close (ed_all_close) to what the .npy file at `path` holds, which an
 * earlier run wrote. With EDDY_GOLDEN=write in the environment writes the file instead. false,
 * without an error, if it differs: the report says where; with an error if there is no such file or
 * it can't be read.
 */
bool ed_golden_check(const char *path, ed_tensor *x, double rtol, double atol,
                     ed_close_report *report);

/* ---- Many tensors: archives ------------------------------------------------------------------ */

/* A file of named tensors, open for reading. */
typedef struct ed_archive ed_archive;

/*
 * Opens a safetensors, .npz or .npy file (one tensor, named ""), or a TensorFlow bundle by its
 * prefix or its .index file. The format is recognised by the file's content, not its name. Opening
 * checks the list of tensors; their elements are checked when they are read.
 */
ed_archive *ed_archive_open(const char *path);

/* The format's name: "safetensors", "npz", "npy", "bundle". */
const char *ed_archive_format(const ed_archive *archive);

/* The number of tensors. */
int64_t ed_archive_count(const ed_archive *archive);

/* The name of tensor i in the file's order; i < 0 counts from the end, here and below. A zero byte
 * in a name is shown as the two characters \0. Strings live as long as the archive. */
const char *ed_archive_name(const ed_archive *archive, int64_t i);

/* The index of the tensor of that name; -1, without an error, if it is not found. */
int64_t ed_archive_find(const ed_archive *archive, const char *name);

/* The dtype as a string, also of those that tensors don't support: "complex64", "string"; in an
 * .npz also "structured", "object", "bytes"; "damaged" for an entry of which only the name is
 * known. */
const char *ed_archive_dtype(const ed_archive *archive, int64_t i);

/* The shape, which may have a higher rank than tensors support. */
ed_ints ed_archive_shape(const ed_archive *archive, int64_t i);

/* The size in the file in bytes. */
int64_t ed_archive_bytes(const ed_archive *archive, int64_t i);

/* Tensor i, mapped where the layout allows it: see ed_read_npy. Fails with
 * ED_UNIMPLEMENTED for a dtype or rank that tensors don't support, with ED_DATA_LOSS for damage, a
 * file that was truncated after it was opened among it. */
ed_tensor *ed_archive_tensor(ed_archive *archive, int64_t i);

/* The same by name; ED_NOT_FOUND if there is none of that name. */
ed_tensor *ed_archive_get(ed_archive *archive, const char *name);

/* Verifies tensor i without keeping it: checksums, digests, sizes. false, with an error, if it
 * is damaged. */
bool ed_archive_verify(ed_archive *archive, int64_t i);

/* XXH3-128 of tensor i's bytes as 32 hexadecimal digits, computed from the file; the string belongs
 * to the scope. NULL on failure. */
const char *ed_archive_digest(ed_archive *archive, int64_t i);

/* The string of a key in a safetensors file's metadata; NULL, without an error, if there is
 * none. It ends at a zero byte. */
const char *ed_archive_metadata(const ed_archive *archive, const char *key);

/* ---- Writing archives ------------------------------------------------------------------------ */

/* Pairs of name and tensor: ED_NAMED("kernel", kernel, "bias", bias). */
typedef struct ed_named {
    const void *const *values; /* a name, its tensor, the next name, ... */
    int64_t count;             /* of names and tensors together */
} ed_named;
#define ED_NAMED(...)                                                                              \
    ((ed_named){(const void *const[]){NULL, __VA_ARGS__} + 1,                                      \
                sizeof((const void *const[]){NULL, __VA_ARGS__}) / sizeof(void *) - 1})

/* Options of ed_archive_write; zero: not given. */
typedef struct ed_archive_options {
    const char *format; /* the format's name; default: by the path's ending */
} ed_archive_options;

/*
 * Writes tensors under names, in the format of the path's ending (.npz, .npy, .safetensors; .index:
 * a bundle, whose prefix is the path without it) or in .format:
 *
 *     ed_archive_write("model.npz", ED_NAMED("kernel", kernel, "bias", bias));
 *     ed_archive_write("model", ED_NAMED("x", x), .format = "bundle");
 *
 * Names must differ and not be empty; a .npy holds one tensor, without its name. Strided views are
 * written strip by strip, without a copy of the whole. false on failure: ED_INVALID_ARGUMENT for an
 * unknown format or an invalid name, ED_UNIMPLEMENTED for a dtype that the format does not have,
 * ED_IO; an older file of that path is then unchanged.
 */
bool ed_archive_write_with(const char *path, ed_named tensors, const ed_archive_options *options);
#define ed_archive_write(path, tensors, ...)                                                       \
    ed_archive_write_with(                                                                         \
        path, tensors, ED_GIVEN_(ed_archive_options, __VA_ARGS__) ED_OPTIONAL_(0, ##__VA_ARGS__))

/* ---- Objects as JSON (io/config.c) ----------------------------------------------------------- */

/*
 * An object's family, kind and options as JSON, including the objects among its options; without
 * the values of its variables, which checkpoints save.
 *
 *     {"module": "layer", "class_name": "dense", "config": {"units": 10, "use_bias": true, ...}}
 *
 * For objects of a kind (ed_kind): layers, optimizers, initializers, metrics; not for those that
 * have a generator among their options. The string belongs to the scope. NULL on failure.
 */
const char *ed_to_json(const void *object);

/* A new object from such JSON; options that are not in it have their defaults. Fails for a
 * string that is not such JSON, for a kind, option or value that does not exist, and for options
 * outside their limits. */
void *ed_from_json(const char *json);

#pragma GCC visibility pop
#endif
