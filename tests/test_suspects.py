"""Who is to blame for a slow event: the JVMs' own logs, the boundaries, the cores, and where on its way it waited."""

import numpy as np
import pytest

from helpers.engines import jvm_log
from helpers.engines.java import collector_option
from helpers.engines.jvm_log import Stop
from helpers.engines.machine import core_count
from helpers.errors import LabError
from helpers.evidence import keys, suspects
from helpers.evidence.suspects import BOUNDARY, NOBODY, OTHERS
from helpers.ruler.load import SAMPLE, Load
from helpers.ruler.trace import Trace

START, RATE = 1_000_000.0, 1_000
SPARKS, KAFKAS = suspects.COLLECTORS.values()

# Lines as Java 17 and Java 25 write them, shortened.
LOG = """\
[1000000500ms] GC(33) Pause Young (Allocation Failure) 776M->241M(1027M) 16.423ms
[1000000500ms] Safepoint "ParallelGCFailedAllocation", Time since last: 950343546 ns, Reaching safepoint: 1787563 ns, \
Cleanup: 75732 ns, At safepoint: 198136705 ns, Total: 200000000 ns
[1000001000ms] Safepoint "Cleanup", Time since last: 1000179694 ns, Reaching safepoint: 55031 ns, Total: 97935 ns
[1000002000ms] Safepoint "ZMarkStartYoung", Time since last: 3 ns, Reaching safepoint: 1 ns, At safepoint: 29000 ns, \
Leaving safepoint: 8000 ns, Total: 40000 ns
"""


def test_a_jvms_log_says_when_it_stood_still_and_why():
    collection, cleanup, start = jvm_log.stops(LOG)
    assert (collection.begin, collection.ms) == (pytest.approx(1_000_000.3), pytest.approx(200))
    assert [stop.collects for stop in (collection, cleanup, start)] == [True, False, True]
    assert (start.why, start.ms) == ("ZMarkStartYoung", pytest.approx(0.04))


def test_stops_of_another_time_are_left_out():
    assert jvm_log.stops(LOG, since=1_000_000.6) == jvm_log.stops(LOG)[1:]
    assert jvm_log.stops(LOG, until=1_000_000.35) == jvm_log.stops(LOG)[:1], "it had begun"
    assert jvm_log.stops("") == []


@pytest.mark.parametrize("why", ["G1CollectFull", "G1CollectForAllocation", "ParallelGCSystemGC", "ZRelocateStart"])
def test_every_collectors_stops_are_known(why):
    assert Stop(0, 1, why).collects


def test_a_collector_that_java_does_not_have_gets_a_sentence():
    with pytest.raises(LabError, match="it can be Parallel, G1, ZGC"):
        collector_option("CMS")


def trace_of(pauses: dict[float, float], **lap: object) -> Trace:
    """10 s of events that take 5 ms, but for whoever is due in a pause (its second: its length): they wait for its end.

    Data to judge, not a measurement.
    """
    samples = np.zeros(10 * RATE, SAMPLE)
    samples["due"] = START + np.arange(len(samples)) / RATE
    waits = np.full(len(samples), 0.005)
    for begin, seconds in pauses.items():
        left = START + begin + seconds - samples["due"]
        waits = np.where((left > 0) & (left <= seconds), np.maximum(waits, left), waits)
    samples["sent"] = samples["due"] + 0.001
    samples["taken"] = samples["due"] + 0.003
    samples["appended"] = samples["due"] + waits
    one = {"measure_from": START, "measure_to": START + 10, "sent": len(samples), "lost": 0, **lap}
    return Trace("real-time", samples, {"rounds": [one], "clock": "appended"})


def stop(second: float, ms: float, why: str = "ParallelGCSystemGC") -> dict:
    return {"begin": START + second, "ms": ms, "why": why}


def boundary(second: float) -> dict:
    begin = f"1970-01-12T13:46:{40 + second - 1:06.3f}Z"
    return {"batch": 3, "timestamp": begin, "rows": 1, "ms": {"triggerExecution": 1_000}}


def look(since: float, others: float) -> dict:
    return {"since": START + since, "until": START + since + 0.5, "other_cores": others * core_count()}


GUILTY = {
    SPARKS: {"stops": {"Spark": [stop(4.0, 300)], "Kafka": []}},
    KAFKAS: {"stops": {"Spark": [], "Kafka": [stop(4.0, 300)]}},
    BOUNDARY: {"progress": [boundary(4.1)]},
    OTHERS: {"cpu": [look(3.9, 0.8)]},
    NOBODY: {},
}


@pytest.mark.parametrize("who", GUILTY)
def test_each_is_blamed_by_its_own_evidence_and_by_nothing_else(who):
    blamed = suspects.blame(trace_of({4.0: 0.3}, **GUILTY[who]))
    assert blamed[who] == pytest.approx(250, abs=2), "those that waited for more than 50 ms"
    assert sum(blamed.values()) == blamed[who]


def test_nobody_is_blamed_for_what_did_not_happen():
    everything = {key: value for evidence in GUILTY.values() for key, value in evidence.items()}
    assert sum(suspects.blame(trace_of({}, **everything)).values()) == 0


@pytest.mark.parametrize(
    "evidence",
    [
        {"stops": {"Spark": [stop(7.0, 300)], "Kafka": []}},  # at another time
        {"stops": {"Spark": [stop(4.0, 300, "Cleanup")], "Kafka": []}},  # no collection
        {"stops": {"Spark": [stop(4.0, 4)], "Kafka": []}},  # too short to notice
        {"cpu": [look(3.9, 0.1)]},  # others hardly did anything
    ],
)
def test_evidence_that_does_not_fit_convicts_nobody(evidence):
    assert suspects.blame(trace_of({4.0: 0.3}, **evidence))[NOBODY] > 200


def test_a_collection_among_other_programs_is_the_collectors():
    both = GUILTY[SPARKS] | GUILTY[OTHERS]
    assert suspects.blame(trace_of({4.0: 0.3}, **both))[OTHERS] == 0


def test_a_stretch_lists_what_coincides_with_it(capsys):
    trace = trace_of({4.0: 0.3}, **GUILTY[SPARKS])
    suspects.between(trace, 3.5, 4.5)
    said = capsys.readouterr().out
    assert "1,000 events" in said and "slowest 299 ms" in said
    assert "4.00 s  Spark's collector, 300 ms (ParallelGCSystemGC)" in said
    suspects.between(trace, 6, 7)
    assert "nothing that we know of" in capsys.readouterr().out


def test_a_stretch_without_events_gets_a_sentence():
    with pytest.raises(LabError, match="no event was due between 40 and 50 s"):
        suspects.between(trace_of({}), 40, 50)


def test_the_parts_of_an_events_way_add_up_to_its_latency():
    trace = trace_of({4.0: 0.3})
    parts = suspects.legs(trace)
    assert np.allclose(sum(parts.values()), trace.latency)
    rare = suspects.typical_legs(trace, 99.9)
    assert rare["late in sending"] == pytest.approx(1, abs=0.1)
    assert rare["to Kafka"] == pytest.approx(2, abs=0.1)
    assert rare["Kafka to Kafka"] > 250


def test_each_culprits_events_wait_in_their_own_part_of_the_way():
    trace = trace_of({4.0: 0.3}, **GUILTY[SPARKS])
    parts = suspects.legs_by_culprit(trace)
    assert parts[SPARKS]["to Kafka"] == pytest.approx(2) and 150 < parts[SPARKS]["Kafka to Kafka"] < 200
    assert np.isnan(parts[BOUNDARY]["Kafka to Kafka"]), "there is no event of its"


def test_a_broker_with_another_clock_does_not_spoil_the_parts():
    trace = trace_of({4.0: 0.3})
    apart = trace_of({4.0: 0.3})
    apart.samples["received"] = trace.samples["appended"]
    for stamp in ("taken", "appended"):
        apart.samples[stamp] += 5
    apart.meta["clock"] = "received"
    for leg, part in suspects.legs(trace).items():
        assert np.allclose(suspects.legs(apart)[leg], part)


def test_one_trace_can_be_read_from_another_moment():
    trace = trace_of({})
    seen = trace.seen("sent", "taken", "from sent")
    assert np.allclose(seen.latency, 2) and seen.name == "from sent"
    assert np.allclose(trace.latency, 5), "the trace itself stays as it is"


def test_a_trace_can_be_split_by_partition_the_fullest_first():
    trace = trace_of({})
    trace.samples["partition"][: 3 * RATE] = 2
    parts = keys.by_partition(trace)
    assert {number: len(part.samples) for number, part in parts.items()} == {0: 7 * RATE, 2: 3 * RATE}
    assert list(parts) == [0, 2]


def test_a_pacing_that_nobody_knows_gets_a_sentence():
    with pytest.raises(LabError, match="it can be schedule, answer, sleep"):
        Load(pacing="fast")
