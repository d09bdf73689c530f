"""Initializers: the shape, then Keras' arguments."""
from words import family

initializer = family("initializer")

initializer("Zeros", 3, 2)
initializer("Zeros", 0)
initializer("Ones", 2, 1, 3)
initializer("Constant", 4, value=0.1)
initializer("Constant", 2, 2, value=-3)
initializer("Constant", 3)

# Random ones, with a seed: Keras' very numbers.
for name in ["GlorotUniform", "GlorotNormal", "HeUniform", "HeNormal", "LecunUniform", "LecunNormal"]:
    initializer(name, 3, 5, seed=7)
    initializer(name, 2, 2, 3, seed=2147483646)
initializer("RandomUniform", 3, 2, minval=-2.0, maxval=0.5, seed=3)
initializer("RandomNormal", 3, 2, mean=1.0, stddev=2.0, seed=3)
initializer("TruncatedNormal", 3, 2, mean=1.0, stddev=2.0, seed=3)
for mode in ["fan_in", "fan_out", "fan_avg"]:
    for distribution in ["truncated_normal", "untruncated_normal", "uniform"]:
        initializer("VarianceScaling", 2, 3, scale=2.0, mode=mode, distribution=distribution, seed=5)

initializer("Orthogonal", 4, 3, seed=1)
initializer("Orthogonal", 2, 5, gain=0.5, seed=1)
initializer("Orthogonal", 2, 2, 3, seed=1)
initializer("Identity", 3, 3)
initializer("Identity", 2, 3, gain=2.0)
