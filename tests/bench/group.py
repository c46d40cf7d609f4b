"""A group of comparisons, and its rows."""

from dataclasses import dataclass, field


@dataclass
class Row:
    """A comparison. `ours` and `theirs` name commands, or a line of one as `command:line`; of
    several of theirs the best counts. Without theirs, the figure itself is held to the gate.
    `lower_end`: the gate is for the worst round, not the median. `counted`: two commands of the
    group that counts instructions, which decide where time cannot."""

    name: str
    ours: str
    theirs: list
    figure: str
    gate: float | None = None
    higher_is_better: bool = True
    lower_end: bool = False
    counted: tuple | None = None

    def gate_text(self):
        return "" if self.gate is None else f"{'≥' if self.higher_is_better else '≤'} {self.gate:g}"


def lower(name, ours, theirs, figure, gate=None):
    return Row(name, ours, theirs, figure, gate, higher_is_better=False)


@dataclass
class Group:
    """`base`: commands that are measured against themselves first, for the spread of equal
    programs. `once`: commands with one round, since they last long and compare within themselves.
    `same`: what compared lines must agree in. `memory`: whether the peak memory of each command is
    measured. `deterministic`: one round says all. `counted_by`: the group that counts instructions
    for rows that are decided by them."""

    name: str
    about: str
    commands: dict = field(default_factory=dict)
    rows: list = field(default_factory=list)
    base: list = field(default_factory=list)
    once: set = field(default_factory=set)
    same: tuple = ()
    memory: bool = False
    deterministic: bool = False
    counted_by: str = "instructions"

    def is_counted(self):
        return any(row.counted for row in self.rows)
