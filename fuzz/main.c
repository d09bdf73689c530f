/* libFuzzer's door: the program runs the target whose name it was called by. */
#include "fuzz/fuzz.h"
#include <stdio.h>
#include <string.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const fuzz_target *target;

__attribute__((visibility("default"))) int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    const char *path = **arguments, *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int n;
    const fuzz_target *targets = fuzz_targets(&n);
    for (int i = 0; i < n; i++)
        if (!strcmp(targets[i].name, name)) target = &targets[i];
    fuzz_claim(target, "call the program by the name of a target, not %s", name);
    return 0;
}

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_run(target, data, size);
    return 0;
}
