"""Layers: inputs, then Keras' arguments. A list of inputs is one argument of the call, a tuple several."""
from words import B, F, I, Layer, family

layer = family("layer")

# ---- Core

layer("Dense", F(2, 4), units=3)
layer("Dense", F(2, 4), units=3, activation="relu")
layer("Dense", F(2, 4), units=3, use_bias=False)
layer("Dense", F(2, 3, 4), units=2, activation="softmax", kernel_initializer="ones", bias_initializer="ones")
layer("Dense", F(1, 40), units=1, activation="tanh")

layer("Activation", F(2, 5, low=-4, high=4), activation="softplus")
layer("Activation", F(2, 3, 4), activation="softmax")
layer("Activation", F(3, low=-4, high=4), activation="gelu")

layer("Flatten", F(2, 3, 4))
layer("Flatten", F(3, 2, 2, 2))
layer("Flatten", F(4))
layer("Flatten", I(2, 3, 2, below=9))

layer("Dropout", F(2, 5), rate=0.4)
layer("Dropout", F(2, 5), rate=0.0).call(training=True)

layer("Sequential", F(2, 4), layers=[Layer("Dense", units=3, activation="relu"), Layer("Dropout", rate=0.5), Layer("Dense", units=2)])
layer("Sequential", F(3, 4), layers=[Layer("Dense", units=3, use_bias=False), Layer("BatchNormalization")]).call(training=True)
inner = Layer("Sequential", layers=[Layer("Dense", units=2), Layer("Activation", activation="elu")])
layer("Sequential", F(2, 4, 3), layers=[Layer("BatchNormalization"), Layer("Flatten"), inner])

# ---- Convolution and pooling

layer("Conv2D", F(1, 5, 6, 2), filters=3, kernel_size=3)
layer("Conv2D", F(1, 5, 6, 2), filters=2, kernel_size=(3, 2), padding="same", activation="relu")
layer("Conv2D", F(2, 5, 6, 1), filters=2, kernel_size=(2, 3), strides=2, padding="same", use_bias=False)
layer("Conv2D", F(1, 6, 5, 2), filters=1, kernel_size=2, strides=(2, 1), padding="valid", activation="tanh")
layer("Conv2D", F(1, 6, 7, 1), filters=2, kernel_size=(2, 3), dilation_rate=2, kernel_initializer="ones", bias_initializer="ones")
layer("Conv2D", F(1, 6, 7, 1), filters=2, kernel_size=3, dilation_rate=(1, 2), padding="same")

layer("MaxPooling2D", F(1, 5, 6, 2))
layer("MaxPooling2D", F(1, 5, 6, 2), padding="same")
layer("MaxPooling2D", F(2, 5, 5, 1), pool_size=3, strides=1, padding="valid")
layer("MaxPooling2D", F(1, 5, 6, 2), pool_size=(3, 2), strides=(1, 2), padding="same")

layer("GlobalAveragePooling2D", F(2, 3, 4, 2))
layer("GlobalAveragePooling2D", F(1, 1, 5, 3))

# ---- Normalization

layer("BatchNormalization", F(4, 3))
layer("BatchNormalization", F(4, 3)).call(training=True)
layer("BatchNormalization", F(2, 3, 2, 2), momentum=0.7, epsilon=0.01).call(training=True)
layer("BatchNormalization", F(5, 2), center=False, momentum=0.0).call(training=True)
layer("BatchNormalization", F(5, 2), scale=False, epsilon=1e-5).call(training=True)
layer("BatchNormalization", F(5, 2), center=False, scale=False)
