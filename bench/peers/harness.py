"""What the peers' programs share: a list of workloads by the ids of eddy_bench, and the same way of timing.

A program adds workloads and then calls main(name, version, threads_setter):

    @workload("product.mm_512")
    def _():
        a, b = rand(512, 512), rand(512, 512)
        return lambda: a @ b

The function makes the operands and returns what is timed. Options are those of eddy_bench: --threads N, --only A,B,
--budget SECONDS, --list, --memory. A line a workload: id, median seconds, fewest, most; "# name version" before.
"""
import argparse
import statistics
import sys
import time

M1, M16, CALLS = 1 << 20, 1 << 24, 1000
_all = []


def workload(name, calls=1):
    """Adds what the decorated function makes; its time is divided by the calls that a run makes."""
    def add(make):
        _all.append((name, make, calls))
        return make
    return add


def options():
    """The command line; programs need the threads before they import the peer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", type=lambda s: s.split(","), default=[])
    parser.add_argument("--budget", type=float, default=0.3)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--memory", action="store_true")
    return parser.parse_args()


def _wanted(name, only):
    return not only or any(name.startswith(p) or name.split(".", 1)[1].startswith(p) for p in only)


def _samples(run, budget, settle):
    settle(run())
    start = time.perf_counter()
    settle(run())
    once = max(time.perf_counter() - start, 1e-9)
    inner = max(1, int(1e-3 / once))
    for _ in range(3 if once < 0.05 else 1):
        settle(run())
    samples, end = [], time.perf_counter() + budget
    while len(samples) < 3 or (len(samples) < 400 and time.perf_counter() < end):
        start = time.perf_counter()
        for _ in range(inner):
            result = run()
        settle(result)
        samples.append((time.perf_counter() - start) / inner)
    return samples


def _status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def _weigh(name, make, settle):
    """The most resident memory of ten runs beyond that of now, when the peer is loaded."""
    before = _status("VmRSS")
    run = make()
    for _ in range(10):
        settle(run())
    print(f"{name}\t{_status('VmHWM') - before}", flush=True)


def main(args, name, version, settle=lambda result: None, before=lambda: None):
    """Runs what --only names. settle(result) waits for a result; before() is called before each workload."""
    if not args.list:
        print(f"# {name} {version}", flush=True)
    for workload_name, make, calls in _all:
        if not _wanted(workload_name, args.only):
            continue
        if args.list:
            print(workload_name)
            continue
        before()
        try:
            if args.memory:
                _weigh(workload_name, make, settle)
                continue
            samples = [s / calls for s in _samples(make(), args.budget, settle)]
        except Exception as error:  # a hole in the table, not its end
            print(f"{workload_name}\tFAILED {type(error).__name__}: {str(error)[:80]}", flush=True)
            continue
        print(f"{workload_name}\t{statistics.median(samples):.4e}\t{min(samples):.4e}\t{max(samples):.4e}", flush=True)
    sys.stdout.flush()
