#!/usr/bin/env python3
"""Times Eddy's workloads beside whichever peers are found, in interleaved rounds, and prints tables.

    compare.py EDDY_BENCH

From the environment: ONLY=conv,mm (beginnings of ids), QUICK=1 (one round, short), ROUNDS and BUDGET (of seconds for a workload
in a round; default 3 and 0.2), THREADS="1 2" (default: 1 and all cores), PEERS="python ..." (the interpreters to look for peers
in; default python3), JSON=file (all figures, for bench/slower.py), MARKDOWN=file (the tables). bench/report.py has what is in
them. Files are written in TMPDIR, or else beside EDDY_BENCH.
"""
import json
import os
import platform
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing is left beside the sources
import report  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# module: what the table calls it, its program, and the columns: what is added to the name, and to the command
PROGRAMS = {"torch": ("PyTorch", "with_torch.py", {"": []}),
            "tensorflow": ("TensorFlow", "with_tensorflow.py", {"": [], " function": ["--function"]}),
            "jax": ("JAX", "with_jax.py", {"": []}),
            "numpy": ("NumPy", "with_numpy.py", {"": []})}
PROBE = """
import importlib.metadata, importlib.util, sys
if importlib.util.find_spec(sys.argv[1]) is None: sys.exit(1)
for name in (sys.argv[1], sys.argv[1] + "-cpu"):
    try: print(importlib.metadata.version(name)); break
    except importlib.metadata.PackageNotFoundError: pass
"""
# What weighs a training step; the smallest and the largest of a kind.
WEIGHED = ("training.mlp_b32", "training.mlp_b5000", "training.lenet_nhwc_b128", "training.lstm_128_of_28_steps_b128",
           "training.transformer_256_b8", "process.first_step")


def peers():
    """Name -> command of each peer that one of the interpreters can import; every version once, of NumPy the first."""
    found = {}
    for python in (os.environ.get("PEERS") or "python3").split():
        for module, (name, program, columns) in PROGRAMS.items():
            try:
                answer = subprocess.run([python, "-c", PROBE, module], capture_output=True, text=True)
            except OSError:
                continue
            if answer.returncode or module == "numpy" and any(n.startswith(name) for n in found):
                continue
            version = ".".join((answer.stdout.split() or ["?"])[-1].split(".")[:2])
            for column, flags in columns.items():
                found.setdefault(f"{name} {version}{column}", [python, os.path.join(HERE, "peers", program), *flags])
    return found


def lines(command, threads, *flags):
    """What a program prints, as lists of cells; what it says of failures goes on to the terminal."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([*command, "--threads", str(threads), *flags], capture_output=True, text=True, env=environment)
    if not done.stdout:
        print(done.stderr[-2000:], file=sys.stderr)
    return [line.split("\t") for line in done.stdout.splitlines()]


class Figures:
    """All that was measured, as it stands in the file of JSON."""

    def __init__(self):
        self.versions, self.work, self.seconds, self.memory = {}, {}, {}, {}

    def time(self, name, command, threads, only, budget):
        seconds = self.seconds.setdefault(str(threads), {}).setdefault(name, {})
        for cells in lines(command, threads, "--budget", str(budget), *(["--only", only] if only else [])):
            if cells[0].startswith("# "):
                self.versions[name] = " ".join(cells)[2:]
            elif len(cells) > 3:
                seconds.setdefault(cells[0], []).append(float(cells[1]))
                if len(cells) > 5:
                    self.work[cells[0]] = [cells[4], *map(float, cells[5:7])]
            else:
                print(f"{name}: " + " ".join(cells), file=sys.stderr)

    def weigh(self, name, command, threads, workload):
        for cells in lines(command, threads, "--workload", workload, "--memory"):
            if len(cells) == 2 and cells[1].isdigit():
                self.memory.setdefault(workload, {})[name] = int(cells[1])

    def data(self):
        return {"machine": machine(), "versions": self.versions, "work": self.work, "seconds": self.seconds, "memory": self.memory}


def machine():
    """The processor, its vectors, the number of cores, memory in GB, the system."""
    with open("/proc/cpuinfo") as file:
        facts = dict(map(str.strip, line.split(":", 1)) for line in file if ":" in line)
    sets = [s for s in ("avx2", "avx512f", "asimd", "sve") if s in (facts.get("flags") or facts.get("Features") or "").split()]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {"processor": facts.get("model name") or platform.machine(), "vectors": " ".join(sets), "cores": os.cpu_count(),
            "memory": round(memory), "system": f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}"}


def wanted(workload, only):
    return not only or any(workload.startswith(p) or workload.split(".", 1)[1].startswith(p) for p in only.split(","))


def main():
    only, quick = os.environ.get("ONLY", "").replace(" ", ","), os.environ.get("QUICK")
    budget = float(os.environ.get("BUDGET") or (0.02 if quick else 0.2))
    rounds = int(os.environ.get("ROUNDS") or (1 if quick else 3))
    threads = [int(n) for n in os.environ.get("THREADS", "").split()] or sorted({1, os.cpu_count()})
    os.environ.setdefault("TMPDIR", os.path.dirname(os.path.abspath(sys.argv[1])))  # the disk under test
    programs, figures = {"Eddy": [sys.argv[1]], **peers()}, Figures()
    for t in threads:
        for number in range(rounds):
            for name, command in programs.items():
                print(f"{t} threads, round {number + 1}: {name}", file=sys.stderr, flush=True)
                figures.time(name, command, t, f"limit,{only}" if only and name == "Eddy" else only, budget)
    for workload in WEIGHED:
        for name, command in programs.items():
            if wanted(workload, only):
                figures.weigh(name, command, threads[-1], workload)
    data = figures.data()
    text = "\n".join(report.document(data)) + "\n"
    print(text)
    if len(programs) == 1:
        print("No peer was found: python3 -m venv DIR && DIR/bin/pip install torch numpy && make bench PEERS=DIR/bin/python")
    for variable, content in (("JSON", json.dumps(data, indent=1)), ("MARKDOWN", text)):
        if os.environ.get(variable):
            with open(os.environ[variable], "w") as file:
                file.write(content)


if __name__ == "__main__":
    main()
