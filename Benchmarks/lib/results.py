"""Samples, and what follows from them: medians, spread, ratios. The document is what is written as JSON."""
import statistics

from .subjects import Subject

# A spread above this is marked in tables.
SPREAD_WIDE = 0.5


class Results:
    def __init__(self, rows, subjects, reference):
        self.rows, self.subjects, self.reference = rows, subjects, reference
        self.samples = {row.name: {subject.label: {} for subject in subjects} for row in rows}
        self.failures = {row.name: {subject.label: [] for subject in subjects} for row in rows}

    def add(self, row, label, round_number, value):
        self.samples[row.name][label][round_number] = value

    def fail(self, row, label, reason):
        self.failures[row.name][label].append(reason)

    def refer_to_fastest(self, label, own):
        """Adds a subject that in each row is the best of the others, by the median, but `own`; it becomes the reference."""
        for row in self.rows:
            medians = {subject.label: statistics.median(self.samples[row.name][subject.label].values())
                       for subject in self.subjects if subject.label != own and self.samples[row.name][subject.label]}
            choose = max if row.higher_is_better else min
            best = choose(medians, key=medians.get) if medians else None
            self.samples[row.name][label] = dict(self.samples[row.name][best]) if best else {}
            self.failures[row.name][label] = []
        self.subjects = [Subject(label, ""), *self.subjects]
        self.reference = label

    def is_empty(self):
        return not any(samples for row in self.samples.values() for samples in row.values())

    def spread(self, row, label):
        """(largest - smallest) / median."""
        values = list(self.samples[row.name][label].values())
        middle = statistics.median(values) if values else 0
        return (max(values) - min(values)) / middle if middle else 0.0

    def entry(self, row, label):
        samples, failures = self.samples[row.name][label], self.failures[row.name][label]
        if not samples:
            return {"failure": failures[0]} if failures else {}
        result = {"median": statistics.median(samples.values()), "spread": round(self.spread(row, label), 3),
                  "samples": [samples[number] for number in sorted(samples)]}
        if failures:
            result["failures"] = failures
        reference = self.samples[row.name].get(self.reference, {})
        # Of each round, as the two were measured side by side: the machine's speed drifts between rounds.
        ratios = [row.speed(samples[number], reference[number]) for number in samples if number in reference]
        ratios = [ratio for ratio in ratios if ratio is not None]
        if ratios:
            result |= {"ratio": round(statistics.median(ratios), 4), "ratioMin": round(min(ratios), 4),
                       "ratioMax": round(max(ratios), 4)}
        return result

    def document(self, **more):
        return {
            **more,
            "reference": self.reference,
            "subjects": [{"label": subject.label, "description": subject.description} for subject in self.subjects],
            "rows": [{"row": row.name, "unit": row.unit, "better": "higher" if row.higher_is_better else "lower",
                      "what": row.what, "limit": row.limit, **({"wanted": row.wanted} if row.wanted else {}),
                      "subjects": {subject.label: self.entry(row, subject.label) for subject in self.subjects}}
                     for row in self.rows],
        }
