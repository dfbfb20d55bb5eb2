"""How many requests Spark's Kafka sink has made, from the Kafka client's own counters in Spark's JVM."""

import time

from pyspark.sql import SparkSession

from helpers.ruler.load import Load
from helpers.ruler.probe import Probe
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Around, Watch

PRODUCERS = "kafka.producer:type=producer-metrics,*"
TOTAL = "request-total"


class Requests(Around):
    """Another watch, and the requests a second of Spark's sink: `sink_requests` of the run's round."""

    def __init__(self, spark: SparkSession, watch: Watch) -> None:
        super().__init__(watch)
        self._spark = spark

    def begin(self, setup_name: str, load: Load) -> None:
        requests_so_far(self._spark)  # the first call loads classes: not while it counts
        self._before: tuple[float, float] | None = None
        super().begin(setup_name, load)

    def look(self, probe: Probe) -> None:
        if self._before is None and probe.status["phase"] == "measuring":
            self._before = requests_so_far(self._spark), time.time()
        super().look(probe)

    def end(self, trace: Trace | None) -> None:
        if trace is not None and self._before is not None:
            before, since = self._before
            made = requests_so_far(self._spark) - before
            trace.rounds[0]["sink_requests"] = made / (trace.rounds[0]["measure_to"] - since)
        super().end(trace)


def requests_so_far(spark: SparkSession) -> float:
    """Of all producers that this JVM keeps."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    assert jvm is not None and gateway is not None
    lang, name_type = jvm.java.lang, jvm.javax.management.ObjectName
    server = lang.management.ManagementFactory.getPlatformMBeanServer()

    def call(method: str, *arguments: tuple[str, object]):
        """A method of the server's interface: its class is hidden from py4j."""
        types = gateway.new_array(lang.Class, len(arguments))
        values = gateway.new_array(lang.Object, len(arguments))
        for number, (kind, value) in enumerate(arguments):
            types[number] = lang.Class.forName(kind)
            values[number] = value
        return lang.Class.forName("javax.management.MBeanServer").getMethod(method, types).invoke(server, values)

    pattern = ("javax.management.ObjectName", name_type(PRODUCERS))
    names = call("queryNames", pattern, ("javax.management.QueryExp", None))
    return sum(
        call("getAttribute", ("javax.management.ObjectName", name), ("java.lang.String", TOTAL)) for name in names
    )
