#include "io/dtype.h"

static const struct {
    const char *name;
    uint8_t bits, tensor;
} infos[] = {
    [IO_FLOAT32] = {"float32", 32, ED_FLOAT32},
    [IO_FLOAT64] = {"float64", 64, ED_FLOAT64},
    [IO_INT32] = {"int32", 32, ED_INT32},
    [IO_UINT8] = {"uint8", 8, ED_UINT8},
    [IO_INT16] = {"int16", 16, ED_INT16},
    [IO_INT8] = {"int8", 8, ED_INT8},
    [IO_STRING] = {"string", 0, 0},
    [IO_COMPLEX64] = {"complex64", 64, 0},
    [IO_INT64] = {"int64", 64, ED_INT64},
    [IO_BOOL] = {"bool", 8, ED_BOOL},
    [IO_QINT8] = {"qint8", 8, 0},
    [IO_QUINT8] = {"quint8", 8, 0},
    [IO_QINT32] = {"qint32", 32, 0},
    [IO_BFLOAT16] = {"bfloat16", 16, ED_BFLOAT16},
    [IO_QINT16] = {"qint16", 16, 0},
    [IO_QUINT16] = {"quint16", 16, 0},
    [IO_UINT16] = {"uint16", 16, ED_UINT16},
    [IO_COMPLEX128] = {"complex128", 128, 0},
    [IO_FLOAT16] = {"float16", 16, ED_FLOAT16},
    [IO_RESOURCE] = {"resource", 0, 0},
    [IO_VARIANT] = {"variant", 0, 0},
    [IO_UINT32] = {"uint32", 32, ED_UINT32},
    [IO_UINT64] = {"uint64", 64, ED_UINT64},
    [IO_FLOAT8_E5M2] = {"float8_e5m2", 8, 0},
    [IO_FLOAT8_E4M3FN] = {"float8_e4m3fn", 8, 0},
    [IO_FLOAT8_E4M3FNUZ] = {"float8_e4m3fnuz", 8, 0},
    [IO_FLOAT8_E4M3B11FNUZ] = {"float8_e4m3b11fnuz", 8, 0},
    [IO_FLOAT8_E5M2FNUZ] = {"float8_e5m2fnuz", 8, 0},
    [IO_INT4] = {"int4", 8, 0},
    [IO_UINT4] = {"uint4", 8, 0},
    [IO_INT2] = {"int2", 8, 0},
    [IO_UINT2] = {"uint2", 8, 0},
    [IO_FLOAT4_E2M1FN] = {"float4_e2m1fn", 8, 0},
};
enum { INFOS = sizeof infos / sizeof *infos };

const char *io_dtype_name(io_dtype dtype)
{
    switch (dtype) {
    case IO_FLOAT6_E2M3: return "float6_e2m3";
    case IO_FLOAT6_E3M2: return "float6_e3m2";
    case IO_FLOAT8_E8M0: return "float8_e8m0";
    default: return (unsigned)dtype < INFOS && infos[dtype].name ? infos[dtype].name : "unknown";
    }
}

int io_dtype_bits(io_dtype dtype)
{
    switch (dtype) {
    case IO_FLOAT6_E2M3:
    case IO_FLOAT6_E3M2: return 6;
    case IO_FLOAT8_E8M0: return 8;
    default: return (unsigned)dtype < INFOS ? infos[dtype].bits : 0;
    }
}

ed_dtype io_dtype_to(io_dtype dtype)
{
    return (unsigned)dtype < INFOS ? infos[dtype].tensor : ED_DTYPE_NONE;
}

io_dtype io_dtype_from(ed_dtype dtype)
{
    for (int i = 1; i < INFOS; i++)
        if (infos[i].tensor == dtype && dtype) return i;
    return IO_NONE;
}

int io_dtype_part(io_dtype dtype)
{
    int bytes = io_dtype_bits(dtype) / 8;
    if (dtype == IO_COMPLEX64 || dtype == IO_COMPLEX128) return bytes / 2;
    return bytes ? bytes : 1;
}
