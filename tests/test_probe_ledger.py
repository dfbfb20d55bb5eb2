"""Every event is accounted for: lost, duplicated or back, by id and by running count."""

import io
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.errors import LabError
from helpers.ruler.ledger import Ledger
from helpers.ruler.load import RATES, SAMPLE, Load, pick_keys
from helpers.ruler.probe import Probe


def by_id(event: int) -> dict:
    return {"event_id": f"c0ffee-{event}"}


def sent(*keys: bytes) -> Ledger:
    """A ledger of events 0, 1, 2, … with these keys."""
    ledger = Ledger()
    for event, key in enumerate(keys):
        ledger.sent(event, key)
    return ledger


def test_an_event_that_does_not_come_back_stays_out():
    ledger = sent(b"a", b"b", b"a")
    assert [ledger.returned(b"a", by_id(event)) for event in (2, 0)] == [[2], [0]]
    assert ledger.out == {1}
    assert ledger.duplicated == 0


def test_an_event_that_comes_back_twice_is_one_duplicate_and_no_new_event():
    ledger = sent(b"a", b"a")
    ledger.returned(b"a", by_id(0))
    assert ledger.returned(b"a", by_id(0)) == []
    assert (ledger.rows, ledger.duplicated, ledger.out) == (2, 1, {1})


def test_a_count_accounts_for_every_event_of_its_key_up_to_it():
    ledger = sent(b"a", b"b", b"a", b"a", b"b")
    assert ledger.returned(b"a", {"count": 2}) == [0, 2]
    assert ledger.out == {1, 3, 4}
    assert ledger.returned(b"a", {"count": 3}) == [3]
    assert ledger.returned(b"b", {"count": 2}) == [1, 4]
    assert ledger.out == set()
    assert (ledger.rows, ledger.duplicated) == (3, 0)


@pytest.mark.parametrize("repeated", [2, 1], ids=["the same count again", "a count from before"])
def test_a_count_that_was_there_already_is_a_duplicate(repeated):
    ledger = sent(b"a", b"a", b"a", b"a")
    ledger.returned(b"a", {"count": 2})
    assert ledger.returned(b"a", {"count": repeated}) == []
    assert ledger.duplicated == 1
    assert ledger.returned(b"a", {"count": 3}) == [2]  # the repetition moved nothing
    assert ledger.out == {3}


def test_a_missing_count_leaves_the_last_events_out():
    ledger = sent(b"a", b"a", b"a")
    ledger.returned(b"a", {"count": 2})
    assert ledger.out == {2}


def test_a_count_beyond_what_was_sent_accounts_for_no_more_than_that():
    ledger = sent(b"a", b"a")
    assert ledger.returned(b"a", {"count": 5}) == [0, 1]
    assert ledger.out == set()
    assert ledger.overcounted == 3


def test_a_query_that_counts_an_event_twice_is_found_out_however_many_follow():
    ledger = sent(b"a", b"a")
    ledger.returned(b"a", {"count": 3})
    for event in range(2, 6):
        ledger.sent(event, b"a")
        assert ledger.returned(b"a", {"count": event + 2}) == [event]
    assert (ledger.overcounted, ledger.out) == (1, set())


def test_an_event_that_the_broker_did_not_take_is_unsent_not_lost():
    ledger = sent(b"a", b"a", b"a")
    ledger.failed(1, b"a")
    ledger.failed(1, b"a")
    assert (ledger.unsent, ledger.out) == (1, {0, 2})
    assert ledger.returned(b"a", {"count": 2}) == [0, 2]
    assert (ledger.overcounted, ledger.out) == (0, set())


@pytest.mark.parametrize("row", [{"total": 5}, {}, None, "text", b"bytes", [1]])
def test_a_row_that_belongs_to_no_event_gets_a_sentence(row):
    with pytest.raises(LabError, match="neither `event_id` nor `count`"):
        sent(b"a").returned(b"a", row)


def test_a_misspelt_setting_of_a_run_gets_a_sentence():
    with pytest.raises(LabError, match=r"second: no such setting of a run. There are rate, seconds, "):
        Load().changed(second=3)
    assert Load().changed(seconds=3).seconds == 3


def test_a_probe_that_is_killed_in_the_middle_of_a_frame_has_said_what_came_before():
    size = SAMPLE.itemsize
    whole = b'{"kind": "samples", "bytes": %d, "phase": "measuring"}\n' % size + bytes(size)
    for cut in range(1, len(whole)):
        probe = Probe.__new__(Probe)
        probe.samples, probe.status, probe.summary = [], {}, None
        probe._process = SimpleNamespace(stdout=io.BytesIO(whole + whole[:cut]))
        probe._read()
        assert len(probe.samples) == 1 and probe.summary is None


def test_keys_are_counted_apart():
    ledger = sent(b"a", b"b")
    assert ledger.returned(b"b", {"count": 1}) == [1]
    assert ledger.out == {0}


def test_uniform_keys_are_all_alike():
    share = np.bincount(pick_keys(Load(keys=20), 100_000), minlength=20) / 100_000
    assert share.min() > 0.04
    assert share.max() < 0.06


def test_skewed_keys_follow_zipf():
    share = np.bincount(pick_keys(Load(keys=20, skew=1.5), 100_000), minlength=20) / 100_000
    assert share[0] / share[1] == pytest.approx(2**1.5, rel=0.1)
    assert share[0] / share[3] == pytest.approx(4**1.5, rel=0.1)
    assert share.min() > 0


def test_the_same_run_gets_the_same_keys():
    assert np.array_equal(pick_keys(Load(), 1_000), pick_keys(Load(), 1_000))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"rate": 0}, "rate=0: the probe sends from 1 to 20,000 events per second"),
        ({"rate": 10_000_000}, "rate=10000000: the probe sends from 1 to 20,000 events per second"),
        ({"rate": -5}, "rate=-5"),
        ({"rate": float("nan")}, "rate=nan"),
        ({"seconds": 0}, "measure for more than 0 seconds"),
        ({"seconds": -1}, "measure for more than 0 seconds"),
        ({"warmup": -1}, "warmup=-1"),
        ({"payload": -1}, "payload=-1: choose from 0 to 100,000 bytes"),
        ({"payload": 5_000_000}, "payload=5000000"),
        ({"keys": 0}, "keys=0: choose from 1 to 1,000,000 keys"),
        ({"skew": 0.5}, "skew=0.5: 0 means uniform keys; a Zipf exponent must be above 1"),
        ({"skew": 1}, "skew=1:"),
        ({"skew": -2}, "skew=-2:"),
        ({"client": "aiokafka"}, "client='aiokafka': it can be 'confluent-kafka' or 'kafka-python'"),
    ],
    ids=lambda value: " ".join(f"{name}={number}" for name, number in value.items()) if isinstance(value, dict) else "",
)
def test_a_load_that_makes_no_sense_is_refused_with_a_sentence(wrong, sentence):
    with pytest.raises(LabError) as caught:
        Load(**wrong)
    assert sentence in str(caught.value)


def test_the_widest_loads_are_accepted():
    low, high = RATES
    assert Load(rate=low, seconds=0.1, warmup=0, payload=0, keys=1).rate == 1
    assert Load(rate=high, payload=100_000, keys=1_000_000, skew=1.01, client="kafka-python").rate == 20_000


@pytest.mark.parametrize("rate", [7, 1_000, 2_000, 20_000])
def test_due_times_keep_the_rate_and_meet_the_brokers_milliseconds_everywhere(rate):
    due = np.array([Load(rate=rate).due(event) for event in range(5_000)])
    assert (np.diff(due) > 0).all()
    assert due[-1] == pytest.approx(4_999 / rate, abs=0.001)
    within = due * 1000 % 1
    shares, _ = np.histogram(within, 4, (0, 1))
    assert shares.min() > 0.8 * shares.mean(), "else rounding to whole milliseconds would not average out"
