"""Layers that reshape: inputs, then Keras' arguments."""
from words import F, I, family

layer = family("layer")

layer("Flatten", F(2, 3, 4))
layer("Flatten", F(3, 2, 2, 2))
layer("Flatten", F(4))
layer("Flatten", I(2, 3, 2, below=9))
layer("Flatten", F(2, 3, 2, 2), data_format="channels_first")

layer("Reshape", F(2, 3, 4), target_shape=(4, 3))
layer("Reshape", F(2, 3, 4), target_shape=(2, -1, 2))
layer("Permute", F(2, 3, 4), dims=(2, 1))
layer("Permute", I(2, 3, 2, 4, below=9), dims=(3, 1, 2))
layer("RepeatVector", F(2, 3), n=4)

layer("ZeroPadding1D", F(2, 3, 2))
layer("ZeroPadding1D", F(2, 3, 2), padding=(0, 2))
layer("ZeroPadding1D", F(2, 3, 2), padding=2, data_format="channels_first")
layer("ZeroPadding2D", F(1, 3, 2, 2))
layer("ZeroPadding2D", F(1, 3, 2, 2), padding=(1, 2))
layer("ZeroPadding2D", F(1, 3, 2, 2), padding=((1, 2), (0, 3)), data_format="channels_first").eddy(padding=[1, 2, 0, 3])
layer("ZeroPadding3D", F(1, 2, 1, 2, 2))
layer("ZeroPadding3D", F(1, 2, 1, 2, 2), padding=((1, 0), (2, 1), (0, 0)), data_format="channels_first").eddy(
    padding=[1, 0, 2, 1, 0, 0])

layer("Cropping1D", F(2, 4, 2))
layer("Cropping1D", F(2, 4, 2), cropping=(2, 0))
layer("Cropping2D", F(1, 4, 5, 2))
layer("Cropping2D", F(1, 4, 5, 2), cropping=(1, 2))
layer("Cropping2D", F(1, 2, 4, 5), cropping=((1, 2), (0, 3)), data_format="channels_first").eddy(cropping=[1, 2, 0, 3])
layer("Cropping3D", F(1, 3, 4, 3, 2))
layer("Cropping3D", F(1, 2, 3, 4, 3), cropping=((1, 0), (2, 1), (0, 0)), data_format="channels_first").eddy(
    cropping=[1, 0, 2, 1, 0, 0])

layer("UpSampling1D", F(2, 3, 2))
layer("UpSampling1D", F(2, 3, 2), size=3)
layer("UpSampling2D", F(1, 2, 3, 2))
layer("UpSampling2D", F(1, 2, 2, 3), size=(2, 3), data_format="channels_first")
for name in "bilinear", "lanczos3", "lanczos5":  # TensorFlow computes the weights in float32
    layer("UpSampling2D", F(1, 3, 2, 2), size=(2, 3), interpolation=name).only("float32")
layer("UpSampling2D", F(1, 3, 2, 2), size=(2, 3), interpolation="bicubic").only("float32").loose(
    "TensorFlow has the weights of bicubic from a table of 1024 points", float32=1e-3)
layer("UpSampling3D", F(1, 2, 1, 2, 2))
layer("UpSampling3D", F(1, 2, 1, 2, 2), size=(1, 2, 3), data_format="channels_first")
