#!/usr/bin/env python3
"""Names the workloads of Eddy that became slower between two runs of make bench JSON=file; exits with 1 if there are any.

    slower.py OLD.json NEW.json [THRESHOLD]

Slower is more than THRESHOLD times (default 1.1) the older time, each the best of its rounds, of the same number of threads.
"""
import json
import sys

sys.dont_write_bytecode = True  # nothing is left beside the sources
from report import best, group_of, head, mean, row, show  # noqa: E402


def changes(old, new):
    """(threads, workload, old seconds, new seconds) of all that both have."""
    for threads in old["seconds"]:
        if threads not in new["seconds"]:
            continue
        before, after = best(old["seconds"][threads]["Eddy"]), best(new["seconds"][threads]["Eddy"])
        yield from ((threads, name, before[name], after[name]) for name in before
                    if name in after and group_of(name) != "limit")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as first, open(sys.argv[2]) as second:
        old, new = json.load(first), json.load(second)
    threshold = float(sys.argv[3]) if len(sys.argv) > 3 else 1.1
    if old["machine"] != new["machine"]:
        print("These were not taken on the same machine.")
    rows = sorted(changes(old, new), key=lambda r: r[2] / r[3])
    if not rows:
        sys.exit("The two have no workload in common.")
    slower = [r for r in rows if r[3] > threshold * r[2]]
    if slower:
        print("\n".join(head(["threads", "workload", "old", "new", "new / old"])))
    for threads, name, before, after in slower:
        print(row([threads, name, show(before), show(after), f"{after / before:.2f}"]))
    print(f"{len(slower)} of {len(rows)} are slower by more than {100 * (threshold - 1):.0f} %; "
          f"the mean of new / old is {mean([r[3] / r[2] for r in rows]):.3f}.")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
