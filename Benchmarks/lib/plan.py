"""The vocabulary of a benchmark: rows are numbers in the report, steps are work, stages are steps in one folder."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the report. `limit`: one sentence about what limits PromiseFS in it. `wanted`: the least ratio."""
    name: str
    unit: str
    higher_is_better: bool
    what: str
    limit: str = ""
    wanted: float = None

    def speed(self, value, reference):
        """How fast compared with the reference, whatever the unit: 1.00 the same, 0.50 half as fast."""
        faster, slower = (value, reference) if self.higher_is_better else (reference, value)
        return faster / slower if slower else None


@dataclasses.dataclass(frozen=True)
class Step:
    """The function of the stage's module with the step's name; it measures `row`, or nothing but is needed."""
    name: str
    row: Row = None
    needs: tuple = ()
    # Before it, untimed: subjects remount and all caches are dropped.
    is_cold: bool = False
    # Before it, untimed: the pages are dropped, so that the step fills the cache alike for every subject.
    is_level: bool = False
    # After it, untimed: uploads are waited for.
    leaves_uploads: bool = False


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    module: str
    steps: tuple
    # Steps that delete many files. They run when all else is done, see scratch.DELETION_SECONDS.
    deletions: tuple = ()
    # Whether each round has a folder of its own, which is removed afterwards.
    has_folder: bool = True

    @property
    def all_steps(self):
        return self.steps + self.deletions

    @property
    def rows(self):
        return [step.row for step in self.all_steps if step.row]

    def needed(self, wanted):
        """Names of the steps that must run for the rows wanted, with what they need, in turn."""
        names = {step.name for step in self.all_steps if step.row and step.row.name in wanted}
        while more := {name for step in self.all_steps if step.name in names for name in step.needs} - names:
            names |= more
        return names


def rows_of(stages):
    return [row for stage in stages for row in stage.rows]


def select(stages, only, skip):
    """Names of the rows wanted; raises ValueError with the name that is neither a row nor a stage."""
    known = {row.name for row in rows_of(stages)} | {stage.name for stage in stages}
    for name in only + skip:
        if name not in known:
            raise ValueError(name)
    return {row.name for stage in stages for row in stage.rows
            if (not only or row.name in only or stage.name in only) and row.name not in skip and stage.name not in skip}
