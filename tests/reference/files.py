"""The files of cases: an .npz with an array for each dtype, into which the JSON in `cases` points."""
import io
import json
import os
import zipfile

import numpy as np


class File:
    """The cases of one kind: arrays of equal bytes are stored once, float64 ones of short numbers as float32."""

    def __init__(self, versions):
        self.root = {"versions": versions, "cases": []}
        self.parts, self.places, self.used = {}, {}, {}

    def array(self, a):
        """Where the array went, for the JSON; None of None."""
        if a is None:
            return None
        a = np.asarray(a)
        place = {"dtype": str(a.dtype), "shape": list(a.shape)}
        short = a.astype("float32") if a.dtype == "float64" and np.all(np.abs(a[np.isfinite(a)]) < 1e30) else a
        stored = short if np.array_equal(short, a, equal_nan=a.dtype.kind == "f") else a
        key = (str(stored.dtype), stored.tobytes())
        if key not in self.places:
            self.places[key] = self.used.get(key[0], 0)
            self.parts.setdefault(key[0], []).append(stored.ravel())
            self.used[key[0]] = self.places[key] + stored.size
        return dict(place, stored=key[0], at=self.places[key])

    def place(self, value):
        """A record of a case with each array in it replaced by its place."""
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, dict):
            return {k: self.place(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.place(v) for v in value]
        return value

    def add(self, case):
        self.root["cases"].append(self.place(case))

    def write(self, path):
        """The same bytes for the same cases: no time of day in it."""
        text = np.frombuffer(json.dumps(self.root, separators=(",", ":")).encode(), np.uint8)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
            for name, value in [("cases", text)] + [(k, np.concatenate(v)) for k, v in sorted(self.parts.items())]:
                npy = io.BytesIO()
                np.lib.format.write_array(npy, value, allow_pickle=False)
                entry = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                z.writestr(entry, npy.getvalue(), zipfile.ZIP_DEFLATED, 9)
