"""Convolutions: inputs, then Keras' arguments. TensorFlow's CPU kernels lack channels_first, but for depthwise
ones, and dilated transposed convolutions."""
from words import Constraint, F, Regularizer, family

layer = family("layer")

BIAS = dict(bias_initializer="ones", bias_regularizer=Regularizer("L2", l2=0.2), bias_constraint=Constraint("NonNeg"))
ACTIVITY = dict(activity_regularizer=Regularizer("L2", l2=0.1))
KERNEL = dict(kernel_initializer="he_normal", kernel_regularizer=Regularizer("L2", l2=0.1),
              kernel_constraint=Constraint("NonNeg"), **BIAS)
DEPTHWISE = dict(depthwise_initializer="ones", depthwise_regularizer=Regularizer("L2", l2=0.1),
                 depthwise_constraint=Constraint("NonNeg"), **BIAS)
POINTWISE = dict(pointwise_initializer="ones", pointwise_regularizer=Regularizer("L2", l2=0.3),
                 pointwise_constraint=Constraint("NonNeg"))

layer("Conv1D", F(2, 6, 2), filters=3, kernel_size=3)
layer("Conv1D", F(1, 6, 4), filters=2, kernel_size=2, groups=2, padding="causal", activation="relu", **KERNEL)
layer("Conv1D", F(1, 6, 2), filters=2, kernel_size=3, padding="causal", dilation_rate=2, use_bias=False)
layer("Conv1D", F(1, 7, 2), filters=2, kernel_size=3, padding="same", strides=2)
layer("Conv1D", F(2, 4, 2), filters=2, kernel_size=2, data_format="channels_last", **ACTIVITY).call(training=True)

layer("Conv2D", F(1, 5, 6, 2), filters=3, kernel_size=3)
layer("Conv2D", F(1, 5, 6, 2), filters=2, kernel_size=(3, 2), padding="same", activation="relu", **KERNEL)
layer("Conv2D", F(2, 5, 6, 1), filters=2, kernel_size=(2, 3), strides=2, padding="same", use_bias=False)
layer("Conv2D", F(1, 6, 5, 2), filters=1, kernel_size=2, strides=(2, 1), padding="valid", activation="tanh")
layer("Conv2D", F(1, 6, 7, 1), filters=2, kernel_size=(2, 3), dilation_rate=2, kernel_initializer="ones", bias_initializer="ones")
layer("Conv2D", F(1, 6, 7, 1), filters=2, kernel_size=3, dilation_rate=(1, 2), padding="same")
layer("Conv2D", F(1, 4, 5, 4), filters=4, kernel_size=2, groups=2)
layer("Conv2D", F(2, 3, 2, 2), filters=2, kernel_size=2, data_format="channels_last", **ACTIVITY).call(training=True)

layer("Conv3D", F(1, 3, 4, 5, 2), filters=2, kernel_size=2)
layer("Conv3D", F(1, 3, 4, 5, 1), filters=2, kernel_size=(1, 2, 3), strides=(1, 2, 2), padding="same", activation="tanh", **KERNEL)
layer("Conv3D", F(1, 3, 4, 5, 1), filters=1, kernel_size=2, dilation_rate=(1, 1, 2), use_bias=False)
layer("Conv3D", F(2, 2, 2, 2, 1), filters=1, kernel_size=2, data_format="channels_last", **ACTIVITY).call(training=True)
layer("Conv3D", F(1, 2, 3, 3, 4), filters=2, kernel_size=2, groups=2)

layer("Conv1DTranspose", F(2, 3, 2), filters=3, kernel_size=3)
layer("Conv1DTranspose", F(1, 4, 2), filters=2, kernel_size=3, strides=2, padding="same", activation="relu", **KERNEL)
layer("Conv1DTranspose", F(1, 4, 2), filters=2, kernel_size=2, strides=3, output_padding=1, use_bias=False)
layer("Conv1DTranspose", F(1, 4, 2), filters=2, kernel_size=3, strides=2, output_padding=1, padding="same")
layer("Conv1DTranspose", F(2, 4, 2), filters=2, kernel_size=2, dilation_rate=1, data_format="channels_last", **ACTIVITY).call(training=True)

layer("Conv2DTranspose", F(1, 3, 2, 2), filters=3, kernel_size=3)
layer("Conv2DTranspose", F(1, 3, 2, 2), filters=2, kernel_size=(2, 3), strides=2, padding="same", activation="tanh", **KERNEL)
layer("Conv2DTranspose", F(1, 3, 2, 2), filters=2, kernel_size=3, strides=(2, 3), output_padding=(0, 2), use_bias=False)
layer("Conv2DTranspose", F(1, 3, 2, 2), filters=2, kernel_size=3, strides=2, output_padding=0, padding="same")
layer("Conv2DTranspose", F(2, 3, 2, 2), filters=2, kernel_size=2, dilation_rate=1, data_format="channels_last", **ACTIVITY).call(training=True)

layer("Conv3DTranspose", F(1, 2, 2, 3, 2), filters=2, kernel_size=2)
layer("Conv3DTranspose", F(1, 2, 2, 2, 1), filters=2, kernel_size=(1, 2, 3), strides=2, padding="same", activation="tanh", **KERNEL)
layer("Conv3DTranspose", F(1, 2, 2, 2, 1), filters=2, kernel_size=2, strides=2, output_padding=1, use_bias=False)
layer("Conv3DTranspose", F(2, 2, 1, 2, 2), filters=1, kernel_size=2, dilation_rate=1, data_format="channels_last", **ACTIVITY).call(training=True)

layer("DepthwiseConv1D", F(2, 5, 2), kernel_size=3)
layer("DepthwiseConv1D", F(1, 6, 2), kernel_size=2, depth_multiplier=2, strides=2, padding="same", activation="relu", **DEPTHWISE)
layer("DepthwiseConv1D", F(1, 6, 2), kernel_size=3, dilation_rate=2, use_bias=False)
layer("DepthwiseConv1D", F(1, 2, 6), kernel_size=3, padding="same", data_format="channels_first")
layer("DepthwiseConv1D", F(2, 4, 2), kernel_size=2, **ACTIVITY).call(training=True)

layer("DepthwiseConv2D", F(1, 4, 5, 2), kernel_size=3)
layer("DepthwiseConv2D", F(1, 5, 5, 2), kernel_size=(2, 3), depth_multiplier=2, strides=2, padding="same", activation="relu", **DEPTHWISE)
layer("DepthwiseConv2D", F(1, 5, 5, 1), kernel_size=2, dilation_rate=2, use_bias=False)
layer("DepthwiseConv2D", F(1, 2, 4, 5), kernel_size=2, padding="same", data_format="channels_first")
layer("DepthwiseConv2D", F(2, 3, 3, 2), kernel_size=2, **ACTIVITY).call(training=True)

layer("SeparableConv1D", F(2, 5, 2), filters=3, kernel_size=3)
layer("SeparableConv1D", F(1, 6, 2), filters=2, kernel_size=2, depth_multiplier=2, strides=2, padding="same", activation="relu", **DEPTHWISE, **POINTWISE)
layer("SeparableConv1D", F(1, 6, 2), filters=2, kernel_size=3, dilation_rate=2, use_bias=False)
layer("SeparableConv1D", F(1, 2, 6), filters=2, kernel_size=3, padding="same", data_format="channels_first")
layer("SeparableConv1D", F(2, 4, 2), filters=2, kernel_size=2, **ACTIVITY).call(training=True)

layer("SeparableConv2D", F(1, 4, 5, 2), filters=3, kernel_size=3)
layer("SeparableConv2D", F(1, 5, 5, 2), filters=2, kernel_size=(2, 3), depth_multiplier=2, strides=2, padding="same", activation="relu", **DEPTHWISE, **POINTWISE)
layer("SeparableConv2D", F(1, 5, 5, 1), filters=2, kernel_size=2, dilation_rate=2, use_bias=False)
layer("SeparableConv2D", F(1, 2, 4, 5), filters=2, kernel_size=2, padding="same", data_format="channels_first")
layer("SeparableConv2D", F(2, 3, 3, 2), filters=2, kernel_size=2, **ACTIVITY).call(training=True)
