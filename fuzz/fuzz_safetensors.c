#include "fuzz/fuzz.h"

void fuzz_safetensors(const uint8_t *data, size_t size)
{
    fuzz_archive(fuzz_file("x.safetensors", data, size));
}
