#!/usr/bin/env python3
"""Runs the bench programs and the peers in turn and prints one table.

    compare_programs.py FOLDER      the folder of the built bench programs

Rounds alternate, so that a slow minute of the machine hits all alike; a cell is the best of the rounds' medians, and the ratio is the
peer's time over Eddy's: above 1, Eddy is faster. A last column has what Eddy's program says besides (GFLOP/s, memory). The machine's own limits stand in the last lines.
"""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PREFIXES = os.environ.get("EDDY_BENCH", "").split()
ROUNDS = int(os.environ.get("EDDY_ROUNDS", "3"))


def peers():
    """Name -> command for each peer that one of the interpreters can import."""
    found = {}
    for python in os.environ.get("EDDY_PEERS", "python3 /usr/bin/python3").split():
        for peer in ("torch", "tensorflow", "jax", "numpy"):
            if peer in found:
                continue
            probe = [python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec('{peer}') is None)"]
            try:
                if subprocess.run(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                    found[peer] = [[python, os.path.join(HERE, "peers.py"), peer] + PREFIXES]
            except FileNotFoundError:
                pass
    return found


def run(commands, best, notes):
    for command in commands:
        text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for line in text.splitlines():
            cells = line.split("\t")
            if len(cells) >= 2:
                best[cells[0]] = min(float(cells[1]), best.get(cells[0], float("inf")))
            if len(cells) >= 3:
                notes[cells[0]] = cells[2]


def show(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def main():
    os.environ.setdefault("TMPDIR", os.path.abspath(sys.argv[1]))  # the disk under test
    programs = {"eddy": [[p] + PREFIXES for p in sorted(glob.glob(os.path.join(sys.argv[1], "bench_*")))
                         if os.access(p, os.X_OK) and not p.endswith((".o", ".d"))]}
    programs.update(peers())
    best = {name: {} for name in programs}
    notes = {}
    for r in range(ROUNDS):
        for name, commands in programs.items():
            print(f"round {r + 1} of {ROUNDS}: {name}", file=sys.stderr, flush=True)
            run(commands, best[name], notes if name == "eddy" else {})
    width = max(len(w) for w in best["eddy"]) if best["eddy"] else 10
    print(f"{'workload':{width}}  " + "  ".join(f"{name:>20}" for name in programs))
    for workload in sorted(best["eddy"], key=lambda w: (w.startswith("limit"), w)):
        own = best["eddy"][workload]
        row = f"{workload:{width}}  {show(own):>20}"
        for name in list(programs)[1:]:
            value = best[name].get(workload)
            row += "  " + (f"{show(value) + f' ({value / own:.2f}x)':>20}" if value else f"{'-':>20}")
        print(f"{row}  {notes.get(workload, '')}".rstrip())


if __name__ == "__main__":
    main()
