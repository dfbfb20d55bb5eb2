"""Batches from Spark's own report: which count, what a typical one costs, and how busy they keep the query."""

import pytest
from test_checkpoint import report, run

from helpers.errors import LabError
from helpers.evidence import batches
from helpers.ruler.trace import Trace

STARTED = [report(0, 0, 1), report(1, 1, 1)]  # these carry the query's start


def test_the_batches_that_carry_the_start_are_left_out_of_every_round():
    one = run(5, [], [*STARTED, report(2, 2, 0.5), report(3, 3, 0.5)])
    both = Trace.join([one, run(5, [], [*STARTED, report(2, 2, 0.5)])])
    assert [batch.number for batch in batches.finished(both)] == [2, 3, 2]


def test_a_batch_lasts_from_its_start_for_as_long_as_its_trigger_took():
    (batch,) = batches.finished(run(5, [], [*STARTED, report(2, 2, 0.25, addBatch=200)]))
    assert batch.end - batch.start == pytest.approx(0.25)
    assert (batch.rows, batch.ms["addBatch"]) == (1, 200)


def test_a_typical_batch_has_the_median_of_every_phase():
    slow, usual = {"addBatch": 900, "walCommit": 10}, {"addBatch": 100, "walCommit": 30}
    trace = run(9, [], [*STARTED, *(report(n, n, 0.5, **ms) for n, ms in enumerate((usual, slow, usual), 2))])
    assert batches.typical(trace) == {"triggerExecution": 500, "addBatch": 100, "walCommit": 30}


def test_busy_is_the_share_of_the_time_between_first_and_last_start():
    trace = run(9, [], [*STARTED, report(2, 2, 0.5), report(3, 4, 1.5), report(4, 6, 2)])
    assert batches.busy_share(trace) == pytest.approx(2 / 4)


def test_too_few_batches_get_a_sentence():
    with pytest.raises(LabError, match="no batch has ended"):
        batches.typical(run(3, [], STARTED))
    with pytest.raises(LabError, match="fewer than two batches"):
        batches.busy_share(run(3, [], [*STARTED, report(2, 2, 0.5)]))
