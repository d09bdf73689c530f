#include "fuzz/fuzz.h"

void fuzz_npz(const uint8_t *data, size_t size)
{
    fuzz_archive(fuzz_file("x.npz", data, size));
}
