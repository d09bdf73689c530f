#include "data/data.h"
#include "fuzz/fuzz.h"

void fuzz_idx(const uint8_t *data, size_t size)
{
    ed_tensor *t = ed_read_idx(fuzz_file("x.idx", data, size));
    if (fuzz_given(t, "read_idx"))
        fuzz_allow(4 * ed_size(t) * (int64_t)ed_dtype_size(ed_dtype_of(t)));
}
