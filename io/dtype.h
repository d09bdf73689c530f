/* Element types in files, more than tensors support. Values are TensorFlow's DataType; those of
 * other formats follow after them. */
#ifndef EDDY_IO_DTYPE_H
#define EDDY_IO_DTYPE_H

#include "tensor/core.h"

typedef enum io_dtype {
    IO_NONE = 0,
    IO_FLOAT32 = 1,
    IO_FLOAT64 = 2,
    IO_INT32 = 3,
    IO_UINT8 = 4,
    IO_INT16 = 5,
    IO_INT8 = 6,
    IO_STRING = 7,
    IO_COMPLEX64 = 8,
    IO_INT64 = 9,
    IO_BOOL = 10,
    IO_QINT8 = 11,
    IO_QUINT8 = 12,
    IO_QINT32 = 13,
    IO_BFLOAT16 = 14,
    IO_QINT16 = 15,
    IO_QUINT16 = 16,
    IO_UINT16 = 17,
    IO_COMPLEX128 = 18,
    IO_FLOAT16 = 19,
    IO_RESOURCE = 20,
    IO_VARIANT = 21,
    IO_UINT32 = 22,
    IO_UINT64 = 23,
    IO_FLOAT8_E5M2 = 24,
    IO_FLOAT8_E4M3FN = 25,
    IO_FLOAT8_E4M3FNUZ = 26,
    IO_FLOAT8_E4M3B11FNUZ = 27,
    IO_FLOAT8_E5M2FNUZ = 28,
    IO_INT4 = 29,
    IO_UINT4 = 30,
    IO_INT2 = 31,
    IO_UINT2 = 32,
    IO_FLOAT4_E2M1FN = 33,
    IO_FLOAT6_E2M3 = 1001, /* from here on of safetensors only */
    IO_FLOAT6_E3M2 = 1002,
    IO_FLOAT8_E8M0 = 1003,
} io_dtype;

/* TensorFlow's name, "float32" and so on; "unknown" for an invalid value. */
const char *io_dtype_name(io_dtype dtype);

/* Bits of an element in a bundle or .npy (4-bit types take a byte there; safetensors packs
 * them); 0 for strings, variants and invalid values. */
int io_dtype_bits(io_dtype dtype);

/* The dtype of tensors, ED_DTYPE_NONE if they do not support it / the reverse. */
ed_dtype io_dtype_to(io_dtype dtype);
io_dtype io_dtype_from(ed_dtype dtype);

/* The size in bytes of the units that are swapped if the file's byte order is not the machine's:
 * half an element for complex numbers. */
int io_dtype_part(io_dtype dtype);

#endif
