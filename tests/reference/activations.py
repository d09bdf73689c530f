"""Activations: the input."""
from words import F, V, family

activation = family("activation")

NAMES = ["elu", "exponential", "gelu", "hard_sigmoid", "leaky_relu", "linear", "log_softmax", "relu", "relu6", "selu", "sigmoid",
         "silu", "softmax", "softplus", "softsign", "swish", "tanh"]

WIDE, NARROW = F(3, 8, low=-9, high=9), F(2, 2, 4, low=-1, high=1)
FAR = V([[-1e4, -60.0, -12.0, -1e-3, 0.0, 1e-3, 12.0, 60.0]])

LOOSE = {
    "leaky_relu": ("TensorFlow keeps the slope in float32", {"float64": 3e-8}),
}

for name in NAMES:
    for x in WIDE, NARROW, FAR:
        case = activation(name, x)
        if name in LOOSE:
            case.loose(LOOSE[name][0], **LOOSE[name][1])
