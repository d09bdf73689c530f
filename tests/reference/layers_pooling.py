"""Pooling: inputs, then Keras' arguments. TensorFlow has pools in three dimensions in float32 alone."""
from words import B, F, family

layer = family("layer")

for name in "MaxPooling", "AveragePooling":
    layer(name + "1D", F(2, 5, 2), pool_size=2)
    layer(name + "1D", F(1, 6, 2), pool_size=3, strides=1, padding="same")
    layer(name + "1D", F(1, 2, 6), pool_size=2, data_format="channels_first")
    layer(name + "2D", F(1, 5, 6, 2), pool_size=2)
    layer(name + "2D", F(1, 5, 6, 2), pool_size=2, padding="same")
    layer(name + "2D", F(2, 5, 5, 1), pool_size=3, strides=1, padding="valid")
    layer(name + "2D", F(1, 5, 6, 2), pool_size=(3, 2), strides=(1, 2), padding="same")
    layer(name + "2D", F(1, 2, 5, 6), pool_size=2, data_format="channels_first")
    layer(name + "3D", F(1, 3, 4, 5, 2), pool_size=2).only("float32")
    layer(name + "3D", F(1, 3, 4, 5, 1), pool_size=(1, 2, 3), strides=(1, 2, 2), padding="same").only("float32")
    layer(name + "3D", F(1, 2, 3, 4, 2), pool_size=2, data_format="channels_first").only("float32")

for name in "GlobalMaxPooling", "GlobalAveragePooling":
    layer(name + "1D", F(2, 3, 2))
    layer(name + "1D", F(2, 3, 2), data_format="channels_first", keepdims=True)
    layer(name + "2D", F(2, 3, 4, 2))
    layer(name + "2D", F(1, 1, 5, 3), keepdims=True)
    layer(name + "2D", F(1, 2, 3, 2), data_format="channels_first")
    layer(name + "3D", F(2, 2, 3, 2, 2))
    layer(name + "3D", F(1, 2, 3, 2, 2), data_format="channels_first", keepdims=True)
layer("GlobalAveragePooling1D", F(3, 5, 2)).call(mask=B(3, 5))
layer("GlobalAveragePooling1D", F(3, 2, 5), data_format="channels_first", keepdims=True).call(mask=B(3, 5))

for name in "AdaptiveMaxPooling", "AdaptiveAveragePooling":
    layer(name + "1D", F(2, 5, 2), output_size=3)
    layer(name + "1D", F(1, 2, 6), output_size=2, data_format="channels_first")
    layer(name + "2D", F(1, 5, 4, 2), output_size=(3, 2))
    layer(name + "2D", F(1, 2, 5, 4), output_size=2, data_format="channels_first")
    layer(name + "3D", F(1, 3, 4, 2, 2), output_size=(2, 3, 1)).only("float32")
    layer(name + "3D", F(1, 2, 3, 4, 2), output_size=2, data_format="channels_first").only("float32")
