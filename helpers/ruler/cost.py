"""What a query costs while it runs: processor time of Spark's process, and packets on the loopback."""

import time

import psutil

from helpers.engines.spark import jvm_pid


class Meter:
    """Reads the counters at every look, and divides by the time between the first reading that counts and the last."""

    def __init__(self) -> None:
        self._process = psutil.Process(jvm_pid())
        self._first: tuple[float, ...] = ()
        self._last: tuple[float, ...] = ()

    def look(self, counts: bool = True) -> None:
        if counts:
            self._last = self._read()
            self._first = self._first or self._last

    def cost(self) -> dict[str, float]:
        """Per second: `cores` of Spark's process (all of Spark, on a local master) and loopback `packets`.

        The packets are everybody's on this machine: Kafka's, the shuffle's, and whatever else runs. Nothing, if it
        was looked at only once.
        """
        if self._first == self._last:
            return {}
        seconds, cores, packets = (last - first for first, last in zip(self._first, self._last, strict=True))
        return {"cores": cores / seconds, "packets": packets / seconds}

    def _read(self) -> tuple[float, ...]:
        used = self._process.cpu_times()
        nets = psutil.net_io_counters(pernic=True)
        packets = sum(counters.packets_sent for name, counters in nets.items() if name.startswith("lo"))
        return time.monotonic(), used.user + used.system, packets


def cost_for(seconds: float) -> dict[str, float]:
    """What Spark costs in the next seconds."""
    meter = Meter()
    meter.look()
    time.sleep(seconds)
    meter.look()
    return meter.cost()
