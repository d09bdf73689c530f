"""Named tensors in TensorFlow's bundles, safetensors, .npz and .npy, both ways, bit for bit."""
import io
import os
import shutil
import subprocess
import zipfile

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy
import tensorflow as tf
from common import Specimen, check, eddy, part, path_of, refused, same, values, write_list, zoo

DIGESTS = "_EDDY_XXH3_128"


def all_same(found, specimens):
    """A mapping holds the specimens and nothing else."""
    names = {s.names[0] for s in specimens}
    assert set(found) == names, f"names differ: {sorted(set(found) ^ names)[:5]}"
    for s in specimens:
        same(found[s.names[0]], s)


# ---- Bundles


def write_bundle(path, specimens):
    tf.raw_ops.SaveV2(prefix=path, tensor_names=[s.names[0] for s in specimens], shape_and_slices=[""] * len(specimens),
                      tensors=[tf.constant(values(s)) for s in specimens])


def read_bundle(path):
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name != DIGESTS}


def bundles(specimens, names):
    ours, theirs = path_of("ours"), path_of("theirs")
    with check("bundle: Eddy writes, TensorFlow's load_checkpoint reads every tensor"):
        eddy("write", "bundle", names, ours)
        all_same(read_bundle(ours), specimens)
    with check("bundle: TensorFlow reads dtypes and shapes without the tensors"):
        reader = tf.train.load_checkpoint(ours)
        for s in specimens:
            assert tuple(reader.get_variable_to_shape_map()[s.names[0]]) == s.shape
            assert reader.get_variable_to_dtype_map()[s.names[0]] == tf.as_dtype(s.dtype)
    with check("bundle: TensorFlow's RestoreV2 reads slices of what Eddy wrote"):
        s = next(s for s in specimens if s.shape == (2, 3, 4))
        rows, = tf.raw_ops.RestoreV2(prefix=ours, tensor_names=[s.names[0]], shape_and_slices=["2 3 4 0,2:1,2:0,4"],
                                     dtypes=[tf.as_dtype(s.dtype)])
        assert rows.numpy().tobytes() == values(s)[:, 1:3].tobytes()
    with check("bundle: TensorFlow's MergeV2Checkpoints takes what Eddy wrote"):
        eddy("write", "bundle", names, path_of("part"))  # whose files the merging takes away
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[path_of("part")], destination_prefix=path_of("merged"), delete_old_dirs=False)
        all_same(read_bundle(path_of("merged")), specimens)
        eddy("compare", "bundle", names, path_of("merged"))
    with check("bundle: TensorFlow writes, Eddy reads every tensor"):
        write_bundle(theirs, specimens)
        eddy("compare", "bundle", names, theirs)
        eddy("compare", "bundle", names, theirs + ".index")
    with check("bundle: dtypes that Eddy's tensors lack are shown and verified"):
        foreign = {"c64": tf.complex(1.0, 2.0), "c128": tf.zeros([2], tf.complex128), "text": tf.constant(["a", "", "b" * 300]),
                   "q": tf.cast([1, 2], tf.qint8), "e4": tf.cast([1.0], tf.dtypes.experimental.float8_e4m3fn),
                   "e5": tf.cast([1.0], tf.dtypes.experimental.float8_e5m2)}
        tf.raw_ops.SaveV2(prefix=theirs, tensor_names=list(foreign), shape_and_slices=[""] * len(foreign), tensors=list(foreign.values()))
        lines = sorted(f"{name} {t.dtype.name} {t.shape.as_list()}" for name, t in foreign.items())
        assert eddy("contents", theirs).splitlines() == lines, eddy("contents", theirs)
    with check("bundle: ten thousand tensors, whose index has many blocks, both ways"):
        many = [Specimen(i, "int64", (3,), (f"layer/{i}/kernel",)) for i in range(10000)]
        names = write_list(many)
        eddy("write", "bundle", names, ours + "-many")
        all_same(read_bundle(ours + "-many"), many)
        write_bundle(theirs, many)
        eddy("compare", "bundle", names, theirs)


# ---- safetensors


def safetensors_files(specimens, names):
    ours, theirs = path_of("ours.safetensors"), path_of("theirs.safetensors")
    with check("safetensors: Eddy writes, safetensors.numpy.load_file reads every tensor"):
        eddy("write", "safetensors", names, ours)
        all_same(safetensors.numpy.load_file(ours), specimens)
    with check("safetensors: safe_open reads them one by one"):
        with safetensors.safe_open(ours, framework="numpy") as file:
            all_same({name: file.get_tensor(name) for name in file.keys()}, specimens)
    with check("safetensors: save_file writes, Eddy reads every tensor"):
        # save_file takes memory as it lies, so it must lie in rows.
        safetensors.numpy.save_file({s.names[0]: np.ascontiguousarray(values(s)).reshape(s.shape) for s in specimens}, theirs,
                                    metadata={"format": "np", "note": "ü \"\\ \n"})
        eddy("compare", "safetensors", names, theirs)


# ---- .npz


def npz_files(specimens, names):
    ours, theirs = path_of("ours.npz"), path_of("theirs.npz")

    def load(path):
        with np.load(path, allow_pickle=False) as file:
            return {name: typed(file[name], by_name[name]) for name in file.files}

    by_name = {s.names[0]: s for s in specimens}
    with check("npz: Eddy writes, np.load reads every tensor"):
        eddy("write", "npz", names, ours)
        all_same(load(ours), specimens)
    with check("npz: zipfile finds every checksum right"):
        with zipfile.ZipFile(ours) as file:
            assert file.testzip() is None and len(file.namelist()) == len(specimens)
    if shutil.which("unzip"):
        with check("npz: unzip -t finds no errors"):
            test = subprocess.run(["unzip", "-tq", ours], capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
            assert test.returncode == 0, test.stdout + test.stderr
    for save in np.savez, np.savez_compressed:
        with check(f"npz: np.{save.__name__} writes, Eddy reads every tensor"):
            save(theirs, **{s.names[0]: values(s) for s in specimens})
            eddy("compare", "npz", names, theirs)
    with check("npz: written into a stream without seeking, as np.savez writes into a pipe"):
        class Pipe(io.RawIOBase):
            def __init__(self, file):
                self.file = file

            def writable(self):
                return True

            def write(self, data):
                return self.file.write(data)

        with open(theirs, "wb") as file, zipfile.ZipFile(Pipe(file), "w", zipfile.ZIP_DEFLATED) as archive:
            for s in specimens:
                with archive.open(s.names[0] + ".npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, values(s), allow_pickle=False)
        eddy("compare", "npz", names, theirs)


# ---- .npy


def typed(array, specimen):
    """.npy knows bfloat16 as two bytes without a meaning."""
    return array.view(ml_dtypes.bfloat16) if specimen.dtype == "bfloat16" and array.dtype == np.dtype("V2") else array


def big_endian(array):
    return array if array.dtype == ml_dtypes.bfloat16 else array.astype(array.dtype.newbyteorder(">"))


def npy_files(specimens, names):
    ours, theirs = path_of("ours-npy"), path_of("theirs-npy")
    os.mkdir(ours)
    os.mkdir(theirs)

    def path(folder, s):
        return os.path.join(folder, f"{s.seed}.npy")

    def written(how, save):
        with check(f"npy: {how}, written by NumPy, read by Eddy"):
            for s in specimens:
                with open(path(theirs, s), "wb") as file:
                    save(file, values(s))
            eddy("compare", "npy", names, theirs)

    with check("npy: Eddy writes, np.load reads every tensor"):
        eddy("write", "npy", names, ours)
        for s in specimens:
            same(typed(np.load(path(ours, s), allow_pickle=False), s), s)
    with check("npy: Eddy's bytes are NumPy's own"):
        for s in specimens:
            if s.dtype == "bfloat16":
                continue
            file = io.BytesIO()
            np.save(file, np.ascontiguousarray(values(s)).reshape(s.shape))
            assert open(path(ours, s), "rb").read() == file.getvalue(), f"{s.dtype} {s.shape} {s.layout}"
    with check("npy: np.memmap maps what Eddy wrote"):
        for s in specimens:
            if s.shape == (5, 4, 3) and s.dtype != "bfloat16":
                same(np.load(path(ours, s), mmap_mode="r"), s)
    written("as np.save does", lambda file, a: np.save(file, a, allow_pickle=False))
    written("columns before rows", lambda file, a: np.save(file, np.copy(a, order="F")))
    written("big-endian", lambda file, a: np.save(file, big_endian(a)))
    written("big-endian, columns before rows", lambda file, a: np.save(file, np.copy(big_endian(a), order="F")))
    written("every second element of more", lambda file, a: np.save(file, np.stack([a, a], -1)[..., 0]))
    for version in (1, 0), (2, 0), (3, 0):
        written(f"format {version[0]}.{version[1]}", lambda file, a: np.lib.format.write_array(file, a, version=version))


# ---- That a difference is noticed


def differences(specimens):
    other = [s._replace(seed=s.seed + 1) if i == 60 else s for i, s in enumerate(specimens)]
    for format_, file in ("bundle", "ours"), ("safetensors", "ours.safetensors"), ("npz", "ours.npz"):
        with check(f"{format_}: a tensor of other elements, one too many, one of another dtype are noticed"):
            wide = [specimens[0]._replace(dtype="int32"), *specimens[1:]]
            for list_, words in (other, "other elements"), (specimens[1:], "tensors, not"), (wide, "is float32, not int32"):
                said = refused("compare", format_, write_list(list_), path_of(file))
                assert words in said, f"{words!r} is not in {said!r}"


def run():
    specimens = zoo()
    names = write_list(specimens)
    with part("TensorFlow's bundles"):
        bundles(specimens, names)
    with part("safetensors"):
        safetensors_files(specimens, names)
    with part(".npz and .npy"):
        npz_files(specimens, names)
        npy_files(specimens, names)
    with part("what is compared"):
        differences(specimens)
