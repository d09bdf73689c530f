"""Activations: the input, then Keras' arguments where it has no defaults."""
from words import F, V, family

activation = family("activation")

NAMES = ["celu", "elu", "exponential", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
         "leaky_relu", "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink",
         "softmax", "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh",
         "tanh_shrink", "threshold"]

WIDE, NARROW = F(3, 8, low=-9, high=9), F(2, 2, 4, low=-1, high=1)
FAR = V([[-1e4, -60.0, -12.0, -1e-3, 0.0, 1e-3, 12.0, 60.0]])
NOT_ZERO = V([[-1e4, -60.0, -12.0, -1e-3, 1e-3, 12.0]])
NEAR = V([[-60.0, -12.0, -1.0, -1e-3, 0.0, 1e-3, 12.0, 60.0]])

INPUTS = {
    "celu": [WIDE, NARROW, NOT_ZERO],  # Keras adds the slopes of both sides at 0
    "squareplus": [WIDE, NARROW, NEAR],  # Keras has 0 for -1e4: x + sqrt(x^2 + 4) cancels
    "sparsemax": [WIDE, FAR],  # Keras is wrong where more than one element remains: they don't add up to 1
}
ARGUMENTS = {"threshold": {"threshold": 0, "default_value": 0}}
LOOSE = {
    "leaky_relu": ("TensorFlow keeps the slope in float32", {"float64": 3e-8}),
    "mish": ("the gradient that TensorFlow composes is off by 3e-6 itself", {"float32": 5e-6}),
}

for name in NAMES:
    for x in INPUTS.get(name, [WIDE, NARROW, FAR]):
        case = activation(name, x, **ARGUMENTS.get(name, {}))
        if name in LOOSE:
            case.loose(LOOSE[name][0], **LOOSE[name][1])
