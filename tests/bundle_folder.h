/* A folder with one bundle, for tests that write it, damage it and read it. */
#ifndef EDDY_TESTS_BUNDLE_FOLDER_H
#define EDDY_TESTS_BUNDLE_FOLDER_H

#include "tests/bundles.h"
#include "tests/folders.h"

static char prefix[96], data_path[160], index_path[160];

#define SPAN(s) ((io_span){(const uint8_t *)(s), sizeof(s) - 1})

/* The folder of the tests, and the paths of its bundle. */
static int begin(void **state)
{
    if (folder_begin(state)) return -1;
    snprintf(prefix, sizeof prefix, "%s/ckpt", folder_root);
    snprintf(data_path, sizeof data_path, "%s.data-00000-of-00001", prefix);
    snprintf(index_path, sizeof index_path, "%s.index", prefix);
    return 0;
}

/* After each test: removes the files. */
static int end_test(void **state)
{
    folder_files(true);
    return check_end(state);
}

/* Opens the bundle. */
static bundle *open_it(void)
{
    bundle *b = bundle_open("test", prefix);
    if (!b) fail_msg("%s", ed_error());
    return b;
}

/* The entry of that name. */
static const bundle_entry *entry_of(const bundle *b, const char *name)
{
    const bundle_entry *e = bundle_find(b, name);
    if (!e) fail_msg("there is no %s", name);
    return e;
}

/* Completes the bundle. */
static void finish(bundle_writer *w)
{
    if (!bundle_finish(w)) fail_msg("%s", ed_error());
}

/* A tensor whose elements are a pattern of bits; of a bool 0 and 1. */
static ed_tensor *pattern(ed_dtype dtype, int rank, const int64_t *shape)
{
    ed_tensor *t = tensor_new(dtype, rank, shape);
    assert_non_null(t);
    size_t bytes = (size_t)t->size * dtype_size(dtype);
    for (size_t i = 0; i < bytes; i++)
        t->data[i] = (char)(dtype == ED_BOOL ? i % 3 == 0 : i * 167 + (i >> 8) * 13 + 1);
    return scope_give(t);
}

#endif
