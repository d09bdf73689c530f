"""Preprocessing: inputs, then Keras' arguments."""
from words import F, I, V, family

layer = family("layer")

layer("Rescaling", F(2, 3), scale=2.0, offset=-1.0)
layer("Normalization", F(2, 3), mean=[1.0, 2.0, 3.0], variance=[4.0, 9.0, 16.0])
layer("Normalization", F(2, 3), mean=[2.0], variance=[4.0], axis=1, invert=True)

layer("CategoryEncoding", I(2, 3, below=4), num_tokens=4).only("float32")
layer("CategoryEncoding", I(2, 1, below=4), num_tokens=4, output_mode="one_hot").only("float32")
layer("CategoryEncoding", I(2, 3, below=3), num_tokens=4, output_mode="count").only("float32")

layer("Resizing", F(2, 4, 5, 2), height=3, width=2).only("float32")
layer("Resizing", F(2, 4, 5, 2), height=6, width=7, interpolation="nearest", antialias=False).only("float32")
layer("Resizing", F(2, 4, 7, 1), height=3, width=3, crop_to_aspect_ratio=True).only("float32")
layer("Resizing", F(1, 8, 6, 1), height=3, width=4, interpolation="bicubic", antialias=True).only("float32")
layer("CenterCrop", F(2, 5, 4, 1), height=2, width=3).only("float32")
layer("CenterCrop", F(2, 2, 4, 1), height=3, width=3).only("float32")
