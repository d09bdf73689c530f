"""The sizes of the workloads that all peers have: as the tables of bench/products.c, convolution.c and optimizers.c."""

# name: (shape of a, shape of b, a is stored transposed, b is, float64)
PRODUCTS = {f"mm_{n}": ((n, n), (n, n), False, False, False) for n in (32, 64, 128, 256, 512, 1024, 2048)}
PRODUCTS.update({f"mm_{n}_double": ((n, n), (n, n), False, False, True) for n in (256, 512, 1024)})
PRODUCTS.update({
    "mm_512_ta": ((512, 512), (512, 512), True, False, False),
    "mm_512_tb": ((512, 512), (512, 512), False, True, False),
    "mm_512_ta_tb": ((512, 512), (512, 512), True, True, False),
    "bmm_64x128x128": ((64, 128, 128), (64, 128, 128), False, False, False),
    "bmm_64x128x128_tb": ((64, 128, 128), (64, 128, 128), False, True, False),
    "bmm_1024x16x16": ((1024, 16, 16), (1024, 16, 16), False, False, False),
    "matvec_4096": ((4096, 4096), (4096, 1), False, False, False),
    "matvec_4096_ta": ((4096, 4096), (4096, 1), True, False, False),
    "vecmat_4096": ((1, 4096), (4096, 4096), False, False, False),
})
for _m in (1, 32, 128, 5000):
    PRODUCTS[f"mm_{_m}x784x512"] = ((_m, 784), (784, 512), False, False, False)
    PRODUCTS[f"mm_{_m}x784x512_tb"] = ((_m, 784), (784, 512), False, True, False)

# name: (batch, size, channels in, kernel, channels out, stride, dilation, groups); SAME padding
CONVOLUTIONS = {
    "conv2d_3x3_1to32_32x28x28": (32, 28, 1, 3, 32, 1, 1, 1),
    "conv2d_3x3_64to64_32x28x28": (32, 28, 64, 3, 64, 1, 1, 1),
    "conv2d_3x3_64to64_32x56x56": (32, 56, 64, 3, 64, 1, 1, 1),
    "conv2d_3x3_256to256_8x14x14": (8, 14, 256, 3, 256, 1, 1, 1),
    "conv2d_3x3_64to128_s2_32x28x28": (32, 28, 64, 3, 128, 2, 1, 1),
    "conv2d_3x3_64to64_d2_32x28x28": (32, 28, 64, 3, 64, 1, 2, 1),
    "conv2d_3x3_64to64_g4_32x28x28": (32, 28, 64, 3, 64, 1, 1, 4),
    "conv2d_5x5_6to16_128x14x14": (128, 14, 6, 5, 16, 1, 1, 1),
    "conv2d_7x7_3to64_s2_8x224x224": (8, 224, 3, 7, 64, 2, 1, 1),
    "conv2d_1x1_256to256_32x14x14": (32, 14, 256, 1, 256, 1, 1, 1),
    "depthwise_3x3_64_32x56x56": (32, 56, 64, 3, 64, 1, 1, 64),
}

# name: sizes of the variables
PARAMETERS = {"10M_in_1": [10_000_000], "10M_in_100": [100_000] * 100, "mlp": [784 * 512, 512, 512 * 10, 10]}
MLP_BATCHES = (32, 128, 500, 5000)


def stored(shape, transposed):
    """The shape in which an operand lies in memory."""
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


def same_padding(size, k, stride, dilation):
    """Zeros before and behind an axis, as TensorFlow counts them: an odd one is behind."""
    out = -(-size // stride)
    pad = max((out - 1) * stride + (k - 1) * dilation + 1 - size, 0)
    return pad // 2, pad - pad // 2
