#include "data/data.h"
#include "fuzz/fuzz.h"

void fuzz_csv(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("x.csv", data, size);
    const bool header = size && data[0] % 2;
    ed_tensor *t = ed_read_csv(path, .header = header);
    if (!fuzz_given(t, "read_csv")) return;
    const char *const *names = ed_read_csv_names(path, .header = header);
    int64_t n = 0;
    while (names && names[n]) n++;
    fuzz_claim(names && n == ed_shape(t).values[1], "names of other columns");
}
