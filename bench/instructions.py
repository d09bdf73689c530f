#!/usr/bin/env python3
"""Counts the instructions of a few workloads by valgrind's callgrind and compares them with those recorded.

    instructions.py EDDY_BENCH [--record]

Times move with the machine and with what else it does; instructions hardly move at all, so a dispatcher that got longer or a
loop that is no longer vectorized is seen at once. One thread and AVX2's kernels, the widest that valgrind knows. More than 5 %
above the record in bench/instructions.txt fails; more than 5 % below asks for a new record, which --record writes.
"""
import os
import re
import shutil
import subprocess
import sys

RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.txt")
MARGIN = 0.05


def count(program, workload):
    """Instructions of one run, behind one that warms up."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=bench_counted",
               program, "--threads", "1", "--once", "--workload", workload]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, EDDY_ISA="avx2"))
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode or not found or found[1] == "0":
        sys.exit(f"{workload}: nothing was counted\n{done.stdout}{done.stderr}")
    return int(found[1])


def recorded():
    with open(RECORD) as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {workload: int(number) for workload, number in rows}


def record(counts):
    with open(RECORD) as file:
        comments = [line for line in file if line.startswith("#")]
    with open(RECORD, "w") as file:
        file.writelines(comments + [f"{workload} {number}\n" for workload, number in counts.items()])


def main():
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return
    with open("/proc/cpuinfo") as file:
        if "avx2" not in file.read().split():
            print("skipped: this machine has no AVX2, for which instructions are recorded")
            return
    bounds = recorded()
    counts, bad = {workload: count(sys.argv[1], workload) for workload in bounds}, 0
    if "--record" in sys.argv:
        record(counts)
        return
    for workload, number in counts.items():
        change = number / bounds[workload] - 1
        verdict = "more than recorded" if change > MARGIN else "fewer: --record" if change < -MARGIN else "ok"
        bad += change > MARGIN
        print(f"{workload:45} {number:12} {100 * change:+6.1f} %  {verdict}")
    print(f"{bad} of {len(counts)} take more instructions than recorded")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
