"""Layers that regularize; of random ones what is not random: inputs, then Keras' arguments."""
from words import B, F, family

layer = family("layer")

layer("Dropout", F(2, 5), rate=0.4)
layer("Dropout", F(2, 5), rate=0.0).call(training=True)
layer("Dropout", F(2, 3, 2), rate=0.4).call(mask=B(2, 3))
layer("Dropout", F(2, 5), rate=0.4, noise_shape=(2, 1))
for name in "SpatialDropout1D", "GaussianDropout", "AlphaDropout":
    layer(name, F(2, 5, 2), rate=0.4).call(mask=B(2, 5))
    layer(name, F(2, 5, 2), rate=0.0).call(training=True)
layer("AlphaDropout", F(2, 5), rate=0.4, noise_shape=(2, 1))
layer("SpatialDropout2D", F(1, 2, 3, 2), rate=0.4, data_format="channels_first")
layer("SpatialDropout3D", F(1, 2, 3, 2, 1), rate=0.4, data_format="channels_first")
layer("GaussianNoise", F(2, 5), stddev=0.4)
layer("GaussianNoise", F(2, 5), stddev=0.0).call(training=True)
layer("ActivityRegularization", F(2, 5), l1=0.1, l2=0.2).call(training=True)
layer("ActivityRegularization", F(2, 5, 3), l2=0.2).call(training=True, mask=B(2, 5))
