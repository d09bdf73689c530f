"""Normalization: inputs, then Keras' arguments."""
from words import B, Constraint, F, Initializer, Regularizer, family

layer = family("layer")

GAMMA_BETA = dict(gamma_initializer="zeros", beta_initializer="ones", gamma_regularizer=Regularizer("L2", l2=0.1),
                  beta_regularizer=Regularizer("L2", l2=0.2), gamma_constraint=Constraint("NonNeg"), beta_constraint=Constraint("NonNeg"))

layer("BatchNormalization", F(4, 3))
layer("BatchNormalization", F(4, 3)).call(training=True)
layer("BatchNormalization", F(2, 3, 2, 2), momentum=0.7, epsilon=0.01).call(training=True)
layer("BatchNormalization", F(5, 2), center=False, momentum=0.0).call(training=True)
layer("BatchNormalization", F(5, 2), scale=False, epsilon=1e-5).call(training=True)
layer("BatchNormalization", F(5, 2), center=False, scale=False)
layer("BatchNormalization", F(3, 2, 4), axis=1).call(training=True)
layer("BatchNormalization", F(3, 2, 4), axis=1)
layer("BatchNormalization", F(3, 4, 2)).call(training=True, mask=B(3, 4))
layer("BatchNormalization", F(3, 4, 2), moving_mean_initializer="ones", moving_variance_initializer=Initializer("Constant", value=2.0), **GAMMA_BETA).call(training=True)

layer("LayerNormalization", F(3, 4))
layer("LayerNormalization", F(2, 3, 4), axis=[1, 2], epsilon=0.01, **GAMMA_BETA)
layer("LayerNormalization", F(2, 3, 4), axis=1)
layer("LayerNormalization", F(2, 3, 4), center=False)
layer("LayerNormalization", F(2, 3, 4), axis=(1, 2), scale=False)
layer("LayerNormalization", F(2, 3, 4), rms_scaling=True)
layer("LayerNormalization", F(2, 3, 4)).call(mask=B(2, 3))

layer("GroupNormalization", F(2, 3, 4), groups=2)
layer("GroupNormalization", F(2, 4, 3), groups=2, axis=1, epsilon=0.01, **GAMMA_BETA)
layer("GroupNormalization", F(2, 5, 3), groups=-1)
layer("GroupNormalization", F(2, 3, 2, 4), groups=1, scale=False)
layer("GroupNormalization", F(2, 3, 2, 4), groups=4, center=False)

layer("RMSNormalization", F(3, 4))
layer("RMSNormalization", F(2, 3, 4), axis=-1, epsilon=0.1)
layer("RMSNormalization", F(2, 3, 4), axis=[1, 2])

layer("UnitNormalization", F(3, 4))
layer("UnitNormalization", F(2, 3, 4), axis=1)
layer("UnitNormalization", F(2, 3, 4), axis=[1, 2])

