"""What every part of `make interop` uses: tensors that both sides know by their seeds, Eddy's program, named checks."""
import contextlib
import os
import subprocess
import sys
import time
from typing import NamedTuple

import ml_dtypes
import numpy as np

DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16", "int8", "int16", "uint16", "uint32", "uint64"]
LAYOUTS = ["rows", "transposed", "backward", "repeated"]

program = folder = None  # set by interop.py


def path_of(*names):
    return os.path.join(folder, *names)


# ---- Tensors


class Specimen(NamedTuple):
    seed: int
    dtype: str
    shape: tuple
    names: tuple  # one; in a tree of objects the way from the root
    layout: str = "rows"  # in memory, on Eddy's side; "repeated" also means that all entries of the first axis are the same


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def mixed(seed, count):
    n = np.arange(count, dtype=np.uint64) + np.uint64((seed << 40) + 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    n = (n ^ n >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    n = (n ^ n >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return n ^ n >> np.uint64(31)


def values(specimen):
    """The elements as interop.c's elements() has them; a view of one row where all are the same."""
    shape = specimen.shape[1:] if specimen.layout == "repeated" else specimen.shape
    bits = mixed(specimen.seed, int(np.prod(shape, dtype=np.int64)))
    dtype = numpy_dtype(specimen.dtype)
    if specimen.dtype == "bool":
        bits &= np.uint64(1)
    low = bits.astype(f"<u{dtype.itemsize}").view(dtype).reshape(shape)
    return np.broadcast_to(low, specimen.shape)


def bits_of(array):
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def same(actual, specimen):
    """Fails unless dtype, shape and every bit are the specimen's."""
    actual, expected = np.asarray(actual), values(specimen)
    what = "/".join(specimen.names)
    assert actual.dtype == expected.dtype, f"{what} is {actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{what} is {actual.shape}, not {expected.shape}"
    assert np.array_equal(bits_of(actual.reshape(-1)), bits_of(expected.reshape(-1))), f"{what} has other elements"


def write_list(specimens, joins=()):
    """The file of records that Eddy's side reads. joins: an old way to an object and a new one."""
    write_list.count += 1
    path = path_of(f"list-{write_list.count}")
    with open(path, "wb") as file:
        for s in specimens:
            fields = [str(s.seed), s.dtype, ",".join(map(str, s.shape)), s.layout, *s.names]
            file.write("".join(f + "\x1f" for f in fields).encode() + b"\x1e")
        for old, new in joins:
            fields = ["0", "same", "", "rows", *old, "", *new]
            file.write("".join(f + "\x1f" for f in fields).encode() + b"\x1e")
    return path


write_list.count = 0


def zoo():
    """Every dtype in every kind of shape and layout, then names that could be taken apart."""
    shapes = [(), (7,), (0,), (3, 0, 2), (1,), (2, 3, 4), (2, 1, 3, 1, 2, 1, 1, 2)]
    specimens = []
    for dtype in DTYPES:
        for shape in shapes:
            specimens.append(Specimen(len(specimens) + 1, dtype, shape, (f"{dtype}-{'x'.join(map(str, shape))}",)))
        for layout in LAYOUTS[1:]:
            specimens.append(Specimen(len(specimens) + 1, dtype, (5, 4, 3), (f"{dtype}-{layout}",), layout))
    names = ["a/b/c", "a.b", "a", "a/", "/a", "with space", " ", "'single'", '"double"', "back\\slash", "tab\there", "line\nbreak",
             ".", "..", "a..b", "über/größe", "名前", "🌀", "e\u0301", "\u00e9", "%s%n", "__metadata", "x.npy", "{}", "\x01", "\x7f",
             "n" * 300, "_", "CON", "-rf"]
    for name in names:
        specimens.append(Specimen(len(specimens) + 1, "int32", (2, 3), (name,)))
    return specimens


# ---- Eddy


def eddy(*args):
    """What Eddy's side prints; fails with what it says is wrong."""
    run = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"eddy {' '.join(map(str, args))}: {run.stderr.strip() or f'ended with {run.returncode}'}"
    return run.stdout


def refused(*args):
    """Eddy's side must say that something is wrong, and what."""
    run = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 1 and run.stderr, f"eddy {' '.join(map(str, args))} ended with {run.returncode}"
    return run.stderr


# ---- Checks

passed, failed = [], []


@contextlib.contextmanager
def check(name):
    """A named check, which fails if anything is raised in it."""
    try:
        yield
    except Exception as error:  # whatever it is, the next check is to run
        failed.append(name)
        text = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        print(f"  FAIL  {name}\n        " + text[:2000].replace("\n", "\n        "), flush=True)
    else:
        passed.append(name)
        print(f"  PASS  {name}", flush=True)


def skip(name, why):
    print(f"  skip  {name}: {why}", flush=True)


@contextlib.contextmanager
def part(name):
    start = time.monotonic()
    print(name, flush=True)
    yield
    print(f"  {time.monotonic() - start:.1f} s", flush=True)


def finish():
    print(f"{len(passed)} of {len(passed) + len(failed)} checks passed" + "".join(f"\n  FAILED  {name}" for name in failed))
    sys.exit(1 if failed or not passed else 0)
