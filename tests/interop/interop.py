"""Python's side of `make interop`: interop.py EDDY'S-PROGRAM FOLDER. Every tensor goes there and back between Eddy and the libraries
whose formats it reads and writes; trainings begun on one side go on on the other."""
import sys

import common

common.program, common.folder = sys.argv[1:3]

import archives  # noqa: E402 (the folder is known now)
import checkpoints
import keras_files
import kinds
import large
import trainings

for module in archives, checkpoints, trainings, kinds, keras_files, large:
    module.run()
common.finish()
