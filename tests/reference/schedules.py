"""Schedules: the steps, then Keras' arguments."""
from words import family

schedule = family("schedule")

schedule("ExponentialDecay", 0, 1, 2, 7, 100, initial_learning_rate=0.1, decay_steps=10, decay_rate=0.9)
schedule("ExponentialDecay", 0, 1, 9, 10, 11, 100, initial_learning_rate=0.5, decay_steps=10, decay_rate=0.3, staircase=True)
