# SPDX-License-Identifier: Apache-2.0
"""What the cluster tests read of a results file."""

import outcome

try:
    import h5py
    import numpy
except ImportError as error:
    outcome.skip_file(f"{error} (package python3-h5py)")


class Results:
    def __init__(self, path):
        with h5py.File(path) as f:
            self.state = f.attrs["state"]
            self.verdict = f.attrs["verdict"]
            kinds, names = f["entities/kind"].asstr()[:], f["entities/name"].asstr()[:]
            self.names = list(names)
            self.nodes = [name for kind, name in zip(kinds, names) if kind == "node"]
            self.findings = []
            if "verdict/findings" in f:
                group = f["verdict/findings"]
                columns = {key: (group[key].asstr()[:] if group[key].dtype.kind == "O" else group[key][:])
                           for key in group if key != "row"}
                rows = len(next(iter(columns.values()), []))
                self.findings = [{key: values[i] for key, values in columns.items()} for i in range(rows)]
            self.events = []
            if "events" in f:
                events = f["events"]
                self.events = list(zip(events["kind"].asstr()[:], events["text"].asstr()[:]))
            self._path = path

    def of_each(self, suite, case, metric, statistic=numpy.median):
        """Median (or another statistic) of the samples of each entity, by name."""
        with h5py.File(self._path) as f:
            group = f["cases"][suite][case]
            values = {}
            for row, entity in enumerate(group["entity"][:]):
                taken = group[metric][row, : group["count"][row]]
                values[self.names[entity]] = float(statistic(taken)) if len(taken) else float("nan")
            return values

    def devices(self, suite):
        """Those that a case of the suite has values of."""
        with h5py.File(self._path) as f:
            kinds = f["entities/kind"].asstr()[:]
            rows = {row for case in f["cases"][suite].values() if "entity" in case for row in case["entity"][:]}
            return {self.names[row] for row in rows if kinds[row] == "device"}

    def once(self, suite, case, metric):
        """Values of a metric that has one for each entity."""
        with h5py.File(self._path) as f:
            return f["cases"][suite][case][metric][:].tolist()

    def states(self):
        """Of the cases, by their paths."""
        with h5py.File(self._path) as f:
            return {f"{suite}/{name}": case.attrs["state"] for suite, cases in f["cases"].items() for name, case in cases.items()}

    def out_of_time(self):
        """Cases that the budget of the level left no time for."""
        with h5py.File(self._path) as f:
            return sorted(f"{suite}/{name}" for suite, cases in f["cases"].items() for name, case in cases.items()
                          if case.attrs["state"] == "skip" and "budget" in case.attrs.get("reason", ""))

    def path(self, case):
        """What carried the messages of a p2p case."""
        with h5py.File(self._path) as f:
            return f["cases/p2p"][case]["parameters"].attrs["path"]

    def cases(self, suite):
        with h5py.File(self._path) as f:
            return sorted(f["cases"][suite])

    def payload_bytes(self, case):
        """Bytes of the messages that were timed in a p2p bandwidth case; a link without samples has no size. In a retest each sample has its own."""
        with h5py.File(self._path) as f:
            group = f["cases/p2p"][case]
            batches = group["repetitions"][:] * group["message_bytes"][:]
            return int(numpy.nansum(batches if batches.ndim == 2 else group["count"][:] * batches))

    def batch_bytes(self, suite, case):
        """What one batch of each entity moves, by name: links that do not get far in their time have smaller ones."""
        with h5py.File(self._path) as f:
            group = f["cases"][suite][case]
            sizes = group["repetitions"][:] * group["message_bytes"][:]
            return {self.names[entity]: float(size) for entity, size in zip(group["entity"][:], sizes)}
