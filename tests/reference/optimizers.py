"""Optimizers: Keras' arguments; four steps on variables of the shapes [3, 2] and [4]."""
from words import Schedule, family

optimizer = family("optimizer")

optimizer("SGD")
optimizer("SGD", learning_rate=0.1, momentum=0.9)
optimizer("SGD", learning_rate=0.1, momentum=0.8, nesterov=True)
optimizer("SGD", learning_rate=0.1, weight_decay=0.05, clipnorm=0.7)
optimizer("SGD", learning_rate=0.2, clipvalue=0.25).call(steps=2)
optimizer("SGD", learning_rate=0.2, momentum=0.5, global_clipnorm=0.9)
optimizer("SGD", learning_rate=0.2, momentum=0.5).call(missing=[(1, 0), (2, 1)])

optimizer("Adam")
optimizer("Adam", learning_rate=0.01, beta_1=0.8, beta_2=0.99, epsilon=1e-5)
optimizer("Adam", learning_rate=0.01, amsgrad=True).call(steps=6)
optimizer("Adam", learning_rate=0.01, weight_decay=0.1, clipnorm=0.5)
optimizer("Adam", learning_rate=0.01, clipvalue=0.25)
optimizer("Adam", learning_rate=0.01, global_clipnorm=0.9).call(missing=[(1, 0)])

optimizer("RMSprop")
optimizer("RMSprop", learning_rate=0.01, rho=0.8, epsilon=1e-4)
optimizer("RMSprop", learning_rate=0.01, momentum=0.9)
optimizer("RMSprop", learning_rate=0.01, centered=True)
optimizer("RMSprop", learning_rate=0.01, centered=True, momentum=0.5, weight_decay=0.1)
optimizer("RMSprop", learning_rate=0.01, clipnorm=0.5).call(steps=2)
optimizer("RMSprop", learning_rate=0.01, clipvalue=0.25).call(missing=[(0, 1)])
optimizer("RMSprop", learning_rate=0.01, global_clipnorm=0.9)
