"""What Spark says, as a learner reads it."""

import pytest

from helpers.errors import EXPLANATIONS, explain

SLOTS = (
    "[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] Cannot run the pipelined stage group: it needs 3 concurrent task slots, "
    "but only 2 are currently free. SQLSTATE: 53000\n=== Streaming Query ===\nIdentifier: …"
)


def test_sparks_own_sentence_stands_between_what_it_means_and_what_to_do():
    said = explain(RuntimeError(SLOTS))
    assert said.startswith("Too few slots: [CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] Cannot run")
    assert said.index("needs 3") < said.index("start_lab(slots=…)")
    assert "SQLSTATE" not in said and "Identifier" not in said


@pytest.mark.parametrize("condition", EXPLANATIONS)
def test_every_condition_is_recognised_wherever_it_stands(condition):
    what, remedy = EXPLANATIONS[condition]
    said = explain(RuntimeError(f"Job aborted: [{condition}] Spark's words."))
    assert said == f"{what}: [{condition}] Spark's words. {remedy}"


def test_the_old_checkpoints_explanation_names_both_ways_on():
    said = explain(RuntimeError("[STREAMING_REAL_TIME_MODE.CHECKPOINT_FORMAT_V1_NOT_SUPPORTED] Use a fresh one."))
    assert said.index("Use a fresh one.") < said.index("checkpointFormatVersion=2") < said.index("startingOffsets")
    assert "counts start anew" in said


def test_what_is_not_known_is_quoted_in_one_line():
    assert explain(RuntimeError("Disk on fire\n  at org.apache")) == "Spark stopped the query: Disk on fire"
    assert "ended by itself" in explain(None)
