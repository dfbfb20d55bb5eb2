"""What a query costs while it runs: processor time of Spark's process and of others, and packets on the loopback."""

import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise

import psutil

from helpers.engines.spark import jvm_pid

RATES = ("cores", "machine_cores", "other_cores", "packets")


class Meter:
    """Reads the counters at every look, and divides by the time between the first reading that counts and the last."""

    def __init__(self, beside: Iterable[int | None] = ()) -> None:
        """`beside` has the processes that belong to a measurement as well: the rest of the machine is others."""
        self._process = psutil.Process(jvm_pid())
        self._beside = [psutil.Process(pid) for pid in beside if pid is not None and psutil.pid_exists(pid)]
        self._readings: list[tuple[float, ...]] = []

    def look(self, counts: bool = True) -> None:
        if counts:
            self._readings.append(self._read())

    def cost(self) -> dict[str, float]:
        """Per second: `cores` of Spark's process (all of Spark, on a local master), `machine_cores` of all processes,
        `other_cores` of those that have no part in this, and loopback `packets`.

        The packets are everybody's on this machine: Kafka's, the shuffle's, and whatever else runs. Nothing, if it
        was looked at only once.
        """
        if len(self._readings) < 2:
            return {}
        return _rates(self._readings[0], self._readings[-1])

    def series(self) -> list[dict[str, float]]:
        """The same from look to look, with `since` and `until` (epoch seconds)."""
        return [
            {"since": before[-1], "until": after[-1], **_rates(before, after)}
            for before, after in pairwise(self._readings)
        ]

    def _read(self) -> tuple[float, ...]:
        used = cpu_seconds(self._process)
        beside = sum(map(cpu_seconds, self._beside))
        nets = psutil.net_io_counters(pernic=True)
        packets = sum(counters.packets_sent for name, counters in nets.items() if name.startswith("lo"))
        machine = psutil.cpu_times()
        idle = machine.idle + getattr(machine, "iowait", 0.0)
        busy = sum(machine[:8]) - idle
        return time.monotonic(), used, busy, busy - used - beside, packets, time.time()


def cpu_seconds(process: psutil.Process) -> float:
    """Processor time that a process has used; 0 if it is gone."""
    with suppress(psutil.Error):
        used = process.cpu_times()
        return used.user + used.system
    return 0.0


def _rates(before: tuple[float, ...], after: tuple[float, ...]) -> dict[str, float]:
    seconds, *used, _ = (last - first for first, last in zip(before, after, strict=True))
    return {name: value / seconds for name, value in zip(RATES, used, strict=True)}


def cost_for(seconds: float) -> dict[str, float]:
    """What Spark costs in the next seconds."""
    meter = Meter()
    meter.look()
    time.sleep(seconds)
    meter.look()
    return meter.cost()
