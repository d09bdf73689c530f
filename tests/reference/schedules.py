"""Schedules: the steps, then Keras' arguments."""
from words import family

schedule = family("schedule")

schedule("ExponentialDecay", 0, 1, 2, 7, 100, initial_learning_rate=0.1, decay_steps=10, decay_rate=0.9)
schedule("ExponentialDecay", 0, 1, 9, 10, 11, 100, initial_learning_rate=0.5, decay_steps=10, decay_rate=0.3, staircase=True)

schedule("InverseTimeDecay", 0, 1, 50, 250, 1000, initial_learning_rate=0.1, decay_steps=100, decay_rate=0.5)
schedule("InverseTimeDecay", 0, 99, 100, 250, initial_learning_rate=0.1, decay_steps=100, decay_rate=0.5, staircase=True)
schedule("PolynomialDecay", 0, 1, 50, 100, 250, initial_learning_rate=0.1, decay_steps=100)
schedule("PolynomialDecay", 0, 1, 100, 101, 250, initial_learning_rate=0.1, decay_steps=100, end_learning_rate=0.01,
         power=0.5, cycle=True)
schedule("PiecewiseConstantDecay", 0, 10, 11, 20, 21, 99, boundaries=[10, 20], values=[0.1, 0.05, 0.01])
schedule("CosineDecay", 0, 1, 50, 100, 200, initial_learning_rate=0.1, decay_steps=100, alpha=0.1)
schedule("CosineDecay", 0, 5, 10, 50, 110, 200, initial_learning_rate=0.01, decay_steps=100, warmup_target=0.1,
         warmup_steps=10)
schedule("CosineDecayRestarts", 0, 1, 50, 100, 250, 600, initial_learning_rate=0.1, first_decay_steps=100)
schedule("CosineDecayRestarts", 0, 50, 99, 250, 399, initial_learning_rate=0.1, first_decay_steps=100, t_mul=1.0,
         m_mul=0.5, alpha=0.1)
schedule("CosineDecayRestarts", 0, 50, 250, 399, initial_learning_rate=0.1, first_decay_steps=100, t_mul=1.5, m_mul=0.5)
