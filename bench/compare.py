#!/usr/bin/env python3
"""Times Eddy's workloads beside whichever peers are found, in interleaved rounds, and prints one table.

    compare.py EDDY_BENCH

From the environment: ONLY=conv,mm (beginnings of ids), QUICK=1 (one round, short), THREADS="1 2" (default: 1 and all cores),
PEERS="python ..." (the interpreters that have PyTorch; default python3), JSON=file (every round's figures).
A cell is the best of the rounds' medians. Ratios are the fastest peer's time over Eddy's, above 1 where Eddy is faster, and
the machine's limit, measured in the same rounds, over Eddy's.
"""
import json
import math
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {"torch": "with_torch.py"}


def peers():
    """Name -> command of each peer that one of the interpreters can import."""
    found = {}
    for python in (os.environ.get("PEERS") or "python3").split():
        for module, program in PROGRAMS.items():
            probe = [python, "-c", f"import {module}; print({module}.__version__)"]
            try:
                answer = subprocess.run(probe, capture_output=True, text=True)
            except OSError:
                continue
            if answer.returncode == 0:
                found[f"{module} {answer.stdout.split()[-1]}"] = [python, os.path.join(HERE, "peers", program)]
    return found


def run(command, threads, only, budget):
    """Id -> (median seconds, unit, amount); wrong and failed ones are told and left out."""
    arguments = ["--threads", str(threads), "--budget", str(budget)] + (["--only", only] if only else [])
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), PYTHONDONTWRITEBYTECODE="1")
    text = subprocess.run(command + arguments, stdout=subprocess.PIPE, text=True, env=environment).stdout
    rows = {}
    for line in text.splitlines():
        cells = line.split("\t")
        if len(cells) > 3:
            rows[cells[0]] = (float(cells[1]), cells[4] if len(cells) > 5 else None, float(cells[5]) if len(cells) > 5 else 0)
        elif not line.startswith("#"):
            print(line, file=sys.stderr)
    return rows


def best(rounds):
    result = {}
    for rows in rounds:
        for name, row in rows.items():
            if name not in result or row[0] < result[name][0]:
                result[name] = row
    return result


def limit(row, limits):
    """Seconds that the machine needs for the row at least; None: nothing is known."""
    _, unit, amount = row
    name = {"bytes": "copy", "read": "read", "flops": "flops", "double_flops": "double_flops"}.get(unit)
    if name in ("copy", "read"):
        name += "_cache" if amount <= 1 << 24 else "_memory"
    row = limits.get(f"limit.{name}")
    return row and amount / (row[2] / row[0])


def show(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(results):
    """Lines of Markdown: the rows, then the groups' geometric means of the ratios."""
    eddy, others = results["eddy"], {n: r for n, r in results.items() if n != "eddy"}
    yield "| workload | Eddy | " + "".join(f"{n} | " for n in others) + "fastest / Eddy | limit / Eddy |"
    yield "|---" * (len(others) + 4) + "|"
    groups = {}
    for name in sorted(n for n in eddy if not n.startswith("limit.")):
        own, times = eddy[name][0], [rows[name][0] for rows in others.values() if name in rows]
        bound = limit(eddy[name], eddy)
        cells = [show(own)] + [show(rows[name][0]) if name in rows else "-" for rows in others.values()]
        cells += [f"{min(times) / own:.2f}" if times else "-", f"{bound / own:.2f}" if bound else "-"]
        yield f"| {name} | " + " | ".join(cells) + " |"
        if times:
            groups.setdefault(name.split(".")[0], []).append(min(times) / own)
    if groups:
        yield ""
        yield "| group | rows | geometric mean | below 0.95 |"
        yield "|---|---|---|---|"
        groups["all"] = [ratio for ratios in groups.values() for ratio in ratios]
    for group, ratios in groups.items():
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        yield f"| {group} | {len(ratios)} | {mean:.2f} | {sum(r < 0.95 for r in ratios)} |"


def main():
    only, quick = os.environ.get("ONLY", ""), os.environ.get("QUICK")
    threads = [int(n) for n in os.environ.get("THREADS", "").split()] or sorted({1, os.cpu_count()})
    programs = {"eddy": [sys.argv[1]], **peers()}
    rounds = {str(t): {name: [] for name in programs} for t in threads}
    for t in threads:
        for number in range(1 if quick else 3):
            for name, command in programs.items():
                print(f"{t} threads, round {number + 1}: {name}", file=sys.stderr, flush=True)
                wanted = f"limit,{only}" if only and name == "eddy" else only
                rounds[str(t)][name].append(run(command, t, wanted, 0.02 if quick else 0.3))
    for t, programs_rounds in rounds.items():
        print(f"\n## {t} thread{'s' if t != '1' else ''}\n")
        print("\n".join(table({name: best(r) for name, r in programs_rounds.items()})))
    if len(programs) == 1:
        print("\nNo PyTorch was found: python3 -m venv DIR && DIR/bin/pip install torch numpy && make bench PEERS=DIR/bin/python")
    if os.environ.get("JSON"):
        with open(os.environ["JSON"], "w") as file:
            json.dump({"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "rounds": rounds}, file)


if __name__ == "__main__":
    main()
