"""The tables of make bench, as Markdown, from the figures that compare.py took."""
import math

# unit: the limits that hold for it, of which the fastest counts, and how a rate is shown
UNITS = {"bytes": (("copy", "stream"), "GB/s"), "updated": (("update",), "GB/s"), "read": (("read",), "GB/s"), "written": (("write_and_sync",), "GB/s"),
         "moved": (("copy", "stream", "read"), "GB/s"), "flops": (("flops",), "GFLOP/s"), "double_flops": (("double_flops",), "GFLOP/s")}
BEHIND = 0.95  # of a ratio: less is behind, by more than noise
IN_CACHE = 1 << 24  # bytes up to which a workload is held against the cache's limit


def best(rounds):
    """Id -> the best of the rounds' medians."""
    return {name: min(values) for name, values in rounds.items()}


def group_of(name):
    return name.split(".")[0]


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def bound(unit, amount, work, own):
    """Seconds that the machine needs for so much; 0: nothing is known."""
    kinds = UNITS[unit][0] if unit in UNITS else ()
    place = ("_cache" if amount <= IN_CACHE else "_memory") if unit in ("bytes", "updated", "read", "moved") else ""
    names = [f"limit.{kind}{place}" for kind in kinds]
    return min((amount * own[name] / work[name][1] for name in names if name in own), default=0)


def limit(name, work, own):
    """Seconds that the machine needs for a workload at least; 0: nothing is known."""
    unit, amount, *moved = work[name]
    far = sum(m for m in moved if m > IN_CACHE)  # what lies in a nearer cache may move faster than any limit measured
    return max(bound(unit, amount, work, own), bound("moved", far, work, own))


def show(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def row(cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def head(cells):
    return [row(cells), "|---" * len(cells) + "|"]


class Table:
    """Of one number of threads: own times, peers' times, ratios."""

    def __init__(self, data, threads):
        self.work, rounds = data["work"], data["seconds"][threads]
        self.own = best(rounds["Eddy"])
        self.peers = {name: best(rows) for name, rows in rounds.items() if name != "Eddy"}
        self.names = [name for name in self.own if group_of(name) != "limit"]

    def ratio(self, name, peers):
        """The fastest of the peers over Eddy; None: none of them has it."""
        times = [self.peers[peer][name] for peer in peers if name in self.peers[peer]]
        return min(times) / self.own[name] if times else None

    def reached(self, name):
        """The machine's limit over Eddy's time; 0: nothing is known."""
        return limit(name, self.work, self.own) / self.own[name]

    def groups(self):
        """For each group: how many rows have a peer, the geometric mean of the ratios to the fastest and to each peer; how many
        rows are behind a peer, and how many reach the machine's limit."""
        yield from head(["group", "rows", "fastest / Eddy", f"below {BEHIND}", "at the limit", *(f"{peer} / Eddy" for peer in self.peers)])
        groups = {}
        for name in self.names:
            groups.setdefault(group_of(name), []).append(name)
        groups["all"] = self.names
        for group, names in groups.items():
            fastest = [r for r in (self.ratio(name, self.peers) for name in names) if r]
            if not fastest:
                continue
            reached = sum(self.reached(name) >= BEHIND for name in names if self.ratio(name, self.peers))
            cells = [group, len(fastest), f"{mean(fastest):.2f}", sum(r < BEHIND for r in fastest), reached]
            for peer in self.peers:
                ratios = [r for r in (self.ratio(name, [peer]) for name in names) if r]
                cells.append(f"{mean(ratios):.2f}" if ratios else "-")
            yield row(cells)

    def workloads(self):
        yield from head(["workload", "Eddy", *self.peers, "fastest / Eddy", "limit / Eddy"])
        for name in self.names:
            ratio, reached = self.ratio(name, self.peers), self.reached(name)
            cells = [name, show(self.own[name])]
            cells += [show(times[name]) if name in times else "-" for times in self.peers.values()]
            yield row(cells + [f"{ratio:.2f}" if ratio else "-", f"{reached:.2f}" if reached else "-"])

    def limits(self):
        for name, seconds in self.own.items():
            if group_of(name) == "limit":
                unit, amount, *_ = self.work[name]
                yield f"{name.split('.')[1].replace('_', ' ')} {amount / seconds / 1e9:.3g} {UNITS[unit][1]}"


def memory(data):
    """What ten runs take beyond what was there before, or a process of its own in all."""
    names = [name for name in data["seconds"][next(iter(data["seconds"]))] if any(name in m for m in data["memory"].values())]
    yield from head(["MB", *names])
    for workload, weights in data["memory"].items():
        yield row([workload, *(f"{weights[name] / 1e6:.1f}" if name in weights else "-" for name in names)])


def document(data):
    """The lines of all tables."""
    machine = data["machine"]
    yield "# Benchmarks"
    yield ""
    yield "Written by `make bench MARKDOWN=docs/benchmarks.md`. A cell is the best of the rounds' medians. Ratios are the fastest peer's"
    yield "time over Eddy's, above 1 where Eddy is faster, and the time in which this machine could move the workload's bytes and do its"
    yield "multiplications and additions, whichever takes longer, measured in the same rounds, over Eddy's: at the limit is what reaches 0.95"
    yield "of that. What is behind a peer by less than 5 % is not counted as below. `bench/bench.h` says what a workload is; the peers' programs, in `bench/peers/`, have the same ids."
    yield ""
    yield f"{machine['processor']}, {machine['vectors']}, {machine['cores']} cores, {machine['memory']} GB of memory, {machine['system']}."
    yield "; ".join(data["versions"].values()) + "."
    for threads in data["seconds"]:
        table = Table(data, threads)
        yield from ("", f"## {threads} thread{'' if threads == '1' else 's'}", "")
        yield "This machine's limits: " + ", ".join(table.limits()) + "."
        if table.peers:
            yield from ("", *table.groups())
        yield from ("", *table.workloads())
    if data["memory"]:
        yield from ("", "## Memory", "")
        yield "Of a training step, the most that was resident in ten steps beyond what the loaded library took before; of process.first_step"
        yield "the whole process."
        yield from ("", *memory(data))
