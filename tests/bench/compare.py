"""Makes a verdict of the figures of a row, and rows of tables of verdicts."""

import statistics
from dataclasses import dataclass

from commands import Failed


@dataclass
class Verdict:
    """What a row of a table says. Without a gate `passed` is None."""

    group: str
    name: str
    figure: str
    gate: str
    ours: float | None = None
    other: float | None = None
    other_name: str = ""
    ratio: float | None = None  # or the figure itself, if it is compared with nothing
    least: float | None = None
    most: float | None = None
    once: bool = False  # measured in one round where others have several
    spread: tuple | None = None  # of the other against itself
    counted: float | None = None  # the ratio by instructions
    by: str = "median"  # what the gate is held against: median, lower end, instructions
    passed: bool | None = None
    failure: str = ""

    @property
    def key(self):
        return f"{self.group}: {self.name}, {self.figure}"


def ratios_of(ours, theirs):
    if len(ours) != len(theirs):
        raise Failed(f"{len(ours)} rounds against {len(theirs)}")
    if not all(theirs):
        raise Failed("divided by 0")
    return [a / b for a, b in zip(ours, theirs)]


def check_same_work(group, row, results):
    for theirs in row.theirs:
        for key in group.same:
            ours, other = results.alike(row.ours, key), results.alike(theirs, key)
            if ours != other:
                raise Failed(f"{key}: {ours}, but {other} of {theirs}")


def best_of(row, results):
    """Of the others the best one's name and figures."""
    measured = {name: results.figures(name, row.figure) for name in row.theirs}
    best = max if row.higher_is_better else min
    name = best(measured, key=lambda name: statistics.median(measured[name]))
    return name, measured[name]


def rounds_of(group, row, rounds):
    return 1 if row.ours.partition(":")[0] in group.once else rounds


def check_rounds(group, row, figures, rounds):
    expected = rounds_of(group, row, rounds)
    if len(figures) != expected:
        raise Failed(f"{len(figures)} rounds of {expected}")


def spread_of(group, row, name, base):
    """The smallest and the largest ratio of a command to itself, whichever run is the first.
    Without the widest round, where there are several: one disturbed round is no spread."""
    if base is None or name.partition(":")[0] not in group.base:
        return None
    first, second = (results.figures(name, row.figure) for results in base)
    ratios = sorted(ratios_of(first, second) + ratios_of(second, first))
    usual = ratios[1:-1] or ratios  # a round has one ratio at either end
    return usual[0], usual[-1]


def counted_ratio(row, counts):
    """As a ratio of speed: how many instructions theirs has for one of ours."""
    if row.counted is None or counts is None:
        return None
    ours, theirs = (counts.figures(name, "instructions_per_item") for name in row.counted)
    return theirs[0] / ours[0]


MOST_EXCUSED = 0.1  # of the gate


def by_chance(row, value, spread):
    """Whether the base itself misses the gate by chance, and a figure that meets it may by chance
    be as bad as this one. No figure is that misses the gate by more than MOST_EXCUSED."""
    least, most = spread
    if not least <= row.gate <= most:
        return False
    if row.higher_is_better:
        return value >= row.gate * max(least, 1 - MOST_EXCUSED)
    return value <= row.gate * min(most, 1 + MOST_EXCUSED)


def decide(row, verdict):
    """Holds the gate against the median or the lower end. Where both are a matter of chance, it is
    held against the instructions; where none are counted, the row says so."""
    value = verdict.ratio
    if row.lower_end:
        value, verdict.by = verdict.least, "lower end"
    if verdict.spread is not None and by_chance(row, value, verdict.spread):
        if verdict.counted is None:
            verdict.by = "a time that is a matter of chance"
        else:
            value, verdict.by = verdict.counted, "instructions"
    verdict.passed = value >= row.gate if row.higher_is_better else value <= row.gate


def fill(verdict, group, row, results, rounds, base, counts):
    ours = results.figures(row.ours, row.figure)
    check_rounds(group, row, ours, rounds)
    ratios = ours
    if row.theirs:
        verdict.other_name, theirs = best_of(row, results)
        ratios = ratios_of(ours, theirs)
        check_same_work(group, row, results)
        verdict.other = statistics.median(theirs)
        verdict.spread = spread_of(group, row, verdict.other_name, base)
        verdict.counted = counted_ratio(row, counts)
    verdict.ours = statistics.median(ours)
    verdict.ratio = statistics.median(ratios)
    verdict.least, verdict.most = min(ratios), max(ratios)
    verdict.once = len(ours) < rounds
    if row.gate is not None:
        decide(row, verdict)


def compare(group, row, results, rounds, base=None, counts=None):
    """The verdict of a row. A row without all of its figures has not passed."""
    verdict = Verdict(group.name, row.name, row.figure, row.gate_text())
    try:
        fill(verdict, group, row, results, rounds, base, counts)
    except Failed as why:
        verdict.failure, verdict.passed = str(why), False
    return verdict


HEAD = ["", "figure", "lade", "compared with", "other", "ratio", "itself", "by instructions",
        "gate", "passed"]  # fmt: skip


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def between(low, high):
    return f"{low:.2f}–{high:.2f}"


def passed_text(verdict):
    if verdict.passed is None:
        return ""
    return ("yes" if verdict.passed else "**no**") + (
        f", by {verdict.by}" if verdict.by != "median" else ""
    )


def cells(verdict):
    figure = verdict.figure.replace("_", " ")
    if verdict.failure:
        return [verdict.name, figure, f"**{verdict.failure}**", *[""] * 5, verdict.gate, "**no**"]
    compared = verdict.other is not None
    once = " (one round)" if verdict.once else ""
    return [
        verdict.name,
        figure,
        number(verdict.ours) + ("" if compared else once),
        verdict.other_name,
        number(verdict.other) if compared else "",
        f"{verdict.ratio:.2f} ({between(verdict.least, verdict.most)})" if compared else "",
        between(*verdict.spread) if verdict.spread else "",
        f"{verdict.counted:.2f}" if verdict.counted is not None else "",
        verdict.gate,
        passed_text(verdict),
    ]


def without_empty_columns(rows):
    used = [i for i in range(len(rows[0])) if i < 2 or any(row[i] for row in rows[1:])]
    return [[row[i] for i in used] for row in rows]


def markdown(head, table):
    rows = without_empty_columns([head, *table])
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def plain(head, table):
    rows = without_empty_columns([head, *table])
    rows = [[cell.replace("**", "") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )
