#include "fuzz/fuzz.h"
#include "io/io.h"
#include <string.h>

/* Read by itself and as an archive of one. */
void fuzz_npy(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("x.npy", data, size);
    ed_tensor *t = ed_read_npy(path);
    if (fuzz_given(t, "read_npy"))
        fuzz_allow(4 * ed_size(t) * (int64_t)ed_dtype_size(ed_dtype_of(t)));
    if (size >= 6 && !memcmp(data, "\x93NUMPY", 6)) fuzz_archive(path);
}
