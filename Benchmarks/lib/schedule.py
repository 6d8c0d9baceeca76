"""Runs stages on every subject, interleaved, the order rotating from round to round, and collects the samples."""
import os, time

from . import system
from .child import run_step
from .command_line import tell
from .report import number
from .results import Results

# So many steps of one stage may fail before a subject is given up in it.
FAILURES_MAX = 2


class Schedule:
    """`before(subject, step, round)` runs before each step, untimed; `configuration(subject)` is given to each step."""

    def __init__(self, subjects, stages, wanted, timeout, configuration, before=None, reference="native"):
        self.subjects, self.timeout, self.configuration, self.before = subjects, timeout, configuration, before
        self.stages = [stage for stage in stages if stage.needed(wanted)]
        self.steps = {stage.name: stage.needed(wanted) for stage in stages}
        self.results = Results([row for stage in stages for row in stage.rows if row.name in wanted], subjects, reference)
        self.wanted = wanted
        self.given_up = {}
        # What the deletions at the end are to delete: (stage, subject, folder, round, failed steps).
        self.left = []
        self.began = time.monotonic()

    def start(self):
        """Those that do not start are left out, with the reason in every row."""
        for subject in self.subjects:
            try:
                subject.start()
            except system.CommandFailed as failure:
                tell(f"{subject.label} is left out: {failure}")
                for stage in self.stages:
                    self.give_up(stage, subject, f"does not start: {failure}")

    def run(self, rounds, extra_rounds=0, spread_max=0.6):
        """An interruption ends the measuring; what was measured is kept and the caller decides."""
        for round_number in range(rounds + extra_rounds):
            chosen = {stage.name: self.subjects for stage in self.stages}
            if round_number >= rounds:
                chosen = {stage.name: self.spread_widely(stage, spread_max) for stage in self.stages}
            for stage in self.stages:
                turn = round_number % len(self.subjects)
                for subject in self.subjects[turn:] + self.subjects[:turn]:
                    if subject in chosen[stage.name]:
                        self.run_stage(stage, subject, round_number)
        self.run_deletions()
        return self.results

    def spread_widely(self, stage, spread_max):
        """Whose samples are still far apart, with the reference beside them."""
        rows = [step.row for step in stage.steps if step.row and step.row.name in self.wanted]
        wide = [subject for subject in self.subjects
                if any(self.results.spread(row, subject.label) > spread_max for row in rows)]
        return wide and [subject for subject in self.subjects if subject in wide or subject.label == self.results.reference]

    def give_up(self, stage, subject, reason):
        self.given_up[stage.name, subject.label] = reason
        for row in stage.rows:
            if row.name in self.wanted:
                self.results.fail(row, subject.label, reason)

    def run_stage(self, stage, subject, round_number):
        if (stage.name, subject.label) in self.given_up:
            return
        if not subject.is_alive():
            return self.give_up(stage, subject, "its mount is gone")
        folder = subject.folder
        if stage.has_folder:
            folder = os.path.join(subject.folder, f"bench-{os.getpid()}-{stage.name}-{round_number}")
            _, failure = self.child("common", "make-folder", subject, folder, round_number)
            if failure:
                self.give_up(stage, subject, f"no folder could be made: {failure}")
                return
        if stage.deletions and system.can_drop_caches():
            # A level start: file systems forget the inodes of earlier rounds.
            system.drop_caches()
        failed, failures = set(), 0
        for step in stage.steps:
            if step.name in self.steps[stage.name]:
                failures += self.run_one(stage, step, subject, folder, round_number, failed)
        if stage.deletions:
            self.left.append((stage, subject, folder, round_number, failed))
        elif stage.has_folder:
            self.child("common", "remove", subject, folder, round_number)
            self.settle(subject)
        if failures >= FAILURES_MAX:
            self.given_up[stage.name, subject.label] = "failed"
        os.sync()

    def run_deletions(self):
        """Stage by stage, those of one round beside each other."""
        order = {stage.name: number for number, stage in enumerate(self.stages)}
        for stage, subject, folder, round_number, failed in sorted(self.left, key=lambda entry: (order[entry[0].name], entry[3])):
            for step in stage.deletions:
                if step.name in self.steps[stage.name]:
                    self.run_one(stage, step, subject, folder, round_number, failed)
            if stage.has_folder:
                self.child("common", "remove", subject, folder, round_number)
        self.left = []

    def run_one(self, stage, step, subject, folder, round_number, failed):
        """1 when it failed. One that needs a failed step is not tried."""
        value, failure = None, None
        if missing := sorted(set(step.needs) & failed):
            failure = "needs " + ", ".join(missing)
        else:
            failure = self.prepare(step, subject, round_number)
            if not failure:
                # A stage without a folder of its own works where `before` has put the subject.
                place = folder if stage.has_folder else subject.folder
                value, failure = self.child(stage.module, step.name, subject, place, round_number)
        if failure:
            failed.add(step.name)
        if step.row and step.row.name in self.wanted:
            if failure:
                self.results.fail(step.row, subject.label, failure)
            elif value is not None:
                self.results.add(step.row, subject.label, round_number, value)
        said = failure or (f"{number(value)} {step.row.unit}" if step.row and value is not None else "done")
        tell(f"{time.monotonic() - self.began:6.0f} s  round {round_number + 1}  {subject.label:>14}  {step.name:14} {said}")
        if step.leaves_uploads:
            self.settle(subject)
        # A step that hangs costs minutes: it is not tried in another round.
        return 0 if not failure or missing else FAILURES_MAX if failure.startswith("took longer") else 1

    def prepare(self, step, subject, round_number):
        """What comes before the time is taken; a reason when it cannot be done."""
        try:
            if not subject.is_alive():
                return "its mount is gone"
            if step.is_cold:
                if not system.can_drop_caches():
                    return "caches can be dropped by root only"
                subject.forget()
                system.drop_caches()
            if step.is_level and system.can_drop_caches():
                system.drop_pages()
            if self.before:
                self.before(subject, step, round_number)
        except (system.CommandFailed, OSError) as failure:
            return str(failure)
        return None

    def settle(self, subject):
        try:
            began = time.monotonic()
            subject.settle()
            if time.monotonic() - began > 10:
                tell(f"          {subject.label}: its uploads took {time.monotonic() - began:.0f} s more")
        except (system.CommandFailed, OSError) as failure:
            tell(f"          {subject.label}: uploads are not over: {failure}")

    def child(self, module, step, subject, folder, round_number):
        configuration = {**self.configuration(subject), "round": round_number}
        return run_step(module, step, folder, configuration, self.timeout, subject.account)
