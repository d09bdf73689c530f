#include "ops/kernels/isa.h"
#include <stdlib.h>
#include <string.h>

int isa_level = ISA_BASELINE;

static const char *const names[ISA_COUNT] = {"baseline", "avx2", "avx512"};

int isa_best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (ISA_SETS > ISA_AVX512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return ISA_AVX512;
    if (ISA_SETS > ISA_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return ISA_AVX2;
#endif
    return ISA_BASELINE;
}

_Bool isa_set(int level)
{
    if (level < 0 || level > isa_best()) return 0;
    isa_level = level;
    return 1;
}

const char *isa_name(int level)
{
    return level >= 0 && level < ISA_COUNT ? names[level] : "unknown";
}

__attribute__((constructor)) static void choose(void)
{
    isa_level = isa_best();
    const char *wanted = getenv("EDDY_ISA");
    for (int i = 0; wanted && i < isa_level; i++)
        if (!strcmp(wanted, names[i])) isa_level = i;
}
