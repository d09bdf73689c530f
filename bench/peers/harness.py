"""What the peers' programs share: a list of workloads by the ids of eddy_bench, and the same way of timing.

A program adds workloads and then calls main(args, name, version):

    @workload("product.mm_512")
    def _():
        a, b = rand(512, 512), rand(512, 512)
        return lambda: a @ b

The function makes the operands and returns what is timed, or a pair: what is timed, and what comes before each run,
untimed. Options are those of eddy_bench: --threads N, --only A,B, --workload ID, --budget SECONDS, --list, --memory. A line a workload:
id, median seconds, fewest, most; "# name <TAB> version" before.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

M1, M16, CALLS = 1 << 20, 1 << 24, 1000
FILE_ELEMENTS, FILE_VARIABLES = 12_500_000, 8
_all = []


def workload(name, calls=1):
    """Adds what the decorated function makes; its time is divided by the calls that a run makes."""
    def add(make):
        _all.append((name, make, calls))
        return make
    return add


def each(prefix, workloads):
    """Adds workloads from a dictionary: the rest of the id -> the function that makes it."""
    for name, make in workloads.items():
        workload(f"{prefix}.{name}")(make)


def repeated(call):
    """CALLS calls in a loop, whose last result is returned."""
    times = range(CALLS)

    def run():
        for _ in times:
            result = call()
        return result
    return run


def options(*flags):
    """The command line; programs need the threads before they import the peer. flags: more of the program's own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", type=lambda s: s.split(","), default=[])
    parser.add_argument("--workload")
    parser.add_argument("--budget", type=float, default=0.3)
    for flag in ("--list", "--memory", "--first-step", *flags):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


def _wanted(name, args):
    if args.workload:
        return name == args.workload
    return not args.only or any(name.startswith(p) or name.split(".", 1)[1].startswith(p) for p in args.only)


# ---- Files and processes: the same for all peers

def _each_file(folder, act):
    for path in [os.path.join(folder, name) for name in os.listdir(folder)] + [folder]:
        descriptor = os.open(path, os.O_RDONLY)
        act(descriptor)
        os.close(descriptor)


def _forget(descriptor):
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def files(make):
    """400 MB: make() returns save(path) and load(path). A save ends when all is on disk, as Eddy's does."""
    def prepared():
        save, load = make()
        folder = tempfile.TemporaryDirectory(prefix="eddy-bench-")
        path = os.path.join(folder.name, "saved")

        def save_on_disk(folder=folder):
            save(path)
            _each_file(folder.name, os.fsync)
        return folder, save_on_disk, lambda folder=folder: load(path)

    @workload("file.save_400MB")
    def _():
        return prepared()[1]

    def saved():
        folder, save, load = prepared()
        save()
        return folder, load
    workload("file.load_400MB")(lambda: saved()[1])

    @workload("file.load_400MB_cold")
    def _():
        folder, load = saved()
        return load, lambda: _each_file(folder.name, _forget)


def first_step(args, make):
    """A process of its own that takes a training step, make()(), and ends; it prints its memory."""
    if args.first_step:
        make()()
        print(_status("VmHWM"))
        sys.exit()
    command = [sys.executable, os.path.abspath(sys.argv[0]), "--threads", str(args.threads), "--first-step"]

    @workload("process.first_step")
    def _():
        return lambda: int(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)


# ---- Timing

def _samples(run, before, budget, settle):
    def seconds(times):
        if before:
            before()
        start = time.perf_counter()
        for _ in range(times):
            result = run()
        settle(result)
        return time.perf_counter() - start
    seconds(1)
    once = max(seconds(1), 1e-9)
    inner = 1 if before else max(1, int(1e-3 / once))
    for _ in range(3 if once < 0.05 else 1):
        seconds(1)
    samples, end = [], time.perf_counter() + budget
    while len(samples) < 3 or (len(samples) < 400 and time.perf_counter() < end):
        samples.append(seconds(inner) / inner)
    return samples


def _status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def _weigh(name, make, settle):
    """The most resident memory of ten runs beyond that of now, when the peer is loaded, or that of another process."""
    before = _status("VmRSS")
    run = make()
    for _ in range(10):
        result = run()
        settle(result)
    print(f"{name}\t{result if name.startswith('process.') else _status('VmHWM') - before}", flush=True)


def main(args, name, version, settle=lambda result: None, before=lambda: None):
    """Runs what --only names. settle(result) waits for a result; before() is called before each workload."""
    if not args.list:
        print(f"# {name}\t{version}", flush=True)
    for workload_name, make, calls in _all:
        if not _wanted(workload_name, args):
            continue
        if args.list:
            print(workload_name)
            continue
        before()
        try:
            if args.memory:
                _weigh(workload_name, make, settle)
                continue
            made = make()
            run, each_time = made if isinstance(made, tuple) else (made, None)
            samples = [s / calls for s in _samples(run, each_time, args.budget, settle)]
        except Exception as error:  # a hole in the table, not its end
            print(f"{workload_name}\tFAILED {type(error).__name__}: {str(error)[:80]}", flush=True)
            continue
        print(f"{workload_name}\t{statistics.median(samples):.4e}\t{min(samples):.4e}\t{max(samples):.4e}", flush=True)
        del made, run, each_time
    sys.stdout.flush()
