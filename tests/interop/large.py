"""Tensors beyond 2^31 bytes, and a .npz beyond 2^32, both ways. Entries of the first axis are the same row, of a length that divides
neither, so an offset that lost its high bits would find other bytes."""
import os
import shutil
import zipfile

import numpy as np
import safetensors.numpy
import tensorflow as tf
from common import Specimen, check, eddy, folder, part, path_of, skip, values, write_list

ROW = 16777259
BIG = Specimen(7, "uint8", (129, ROW), ("big",), "repeated")  # 2.16e9 bytes
HUGE = BIG._replace(shape=(257, ROW))  # 4.31e9 bytes
SMALL = Specimen(8, "float32", (3,), ("behind",))
NEEDED = 8 << 30


def rows_same(array, specimen):
    row = values(specimen)[0]
    assert array.shape == specimen.shape and array.dtype == row.dtype, f"{array.dtype} {array.shape}"
    for i in range(len(array)):
        assert np.array_equal(array[i], row), f"row {i} differs"


def memory_available():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))


def bundle(names):
    path = path_of("large", "bundle")
    with check("large: a bundle of 2.2 GB, Eddy writes, TensorFlow reads"):
        eddy("write", "bundle", names, path)
        reader = tf.train.load_checkpoint(path)
        rows_same(reader.get_tensor("big"), BIG)
        assert reader.get_tensor("behind").tobytes() == values(SMALL).tobytes()
    with check("large: a bundle of 2.2 GB, TensorFlow writes, Eddy reads"):
        tensors = [tf.tile(values(BIG)[:1], (BIG.shape[0], 1)), tf.constant(values(SMALL))]
        tf.raw_ops.SaveV2(prefix=path, tensor_names=["big", "behind"], shape_and_slices=["", ""], tensors=tensors)
        eddy("compare", "bundle", names, path)


def safetensors_file(names):
    path = path_of("large", "x.safetensors")
    with check("large: a safetensors file of 2.2 GB, Eddy writes, safetensors reads"):
        eddy("write", "safetensors", names, path)
        with safetensors.safe_open(path, framework="numpy") as file:
            rows_same(file.get_tensor("big"), BIG)
            assert file.get_tensor("behind").tobytes() == values(SMALL).tobytes()
    with check("large: a safetensors file of 2.2 GB, safetensors writes, Eddy reads"):
        safetensors.numpy.save_file({"big": np.ascontiguousarray(values(BIG)), "behind": values(SMALL)}, path)
        eddy("compare", "safetensors", names, path)


def npz(names):
    path = path_of("large", "x.npz")
    with check("large: a .npz of 4.3 GB, Eddy writes, zipfile and np.load read"):
        eddy("write", "npz", names, path)
        row = values(HUGE)[0].tobytes()
        with zipfile.ZipFile(path) as archive, archive.open("big.npy") as file:
            version = np.lib.format.read_magic(file)
            assert version == (1, 0) and np.lib.format.read_array_header_1_0(file) == (HUGE.shape, False, np.dtype("u1"))
            for i in range(HUGE.shape[0]):
                assert file.read(ROW) == row, f"row {i} differs"
            assert file.read() == b"", "more than rows"  # and the checksum was right
        assert np.load(path)["behind"].tobytes() == values(SMALL).tobytes()
    with check("large: a .npz of 4.3 GB, np.savez writes, Eddy reads"):
        np.savez(path, big=values(HUGE), behind=values(SMALL))
        eddy("compare", "npz", names, path)


def npy(names):
    os.mkdir(path_of("large", "npy"))
    path = path_of("large", "npy", f"{BIG.seed}.npy")
    with check("large: a .npy of 2.2 GB, Eddy writes, NumPy maps"):
        eddy("write", "npy", names, path_of("large", "npy"))
        rows_same(np.load(path, mmap_mode="r"), BIG)
    with check("large: a .npy of 2.2 GB, np.save writes, Eddy reads"):
        np.save(path, np.ascontiguousarray(values(BIG)))  # NumPy writes a view element by element
        eddy("compare", "npy", names, path_of("large", "npy"))


def run():
    free, memory = shutil.disk_usage(folder).free, memory_available()
    if free < NEEDED or memory < NEEDED:
        skip("large tensors", f"they need 8 GiB of disk and of memory, there are {free >> 30} and {memory >> 30}")
        return
    parts = [(bundle, "TensorFlow's bundles", [BIG, SMALL]), (safetensors_file, "safetensors", [BIG, SMALL]),
             (npz, ".npz", [HUGE, SMALL]), (npy, ".npy", [BIG])]
    for go, name, specimens in parts:
        os.mkdir(path_of("large"))
        with part(f"large tensors: {name}"):
            go(write_list(specimens))
        shutil.rmtree(path_of("large"))
