"""The one exception that learners are meant to read, and what Spark's own errors mean for them."""

import re


class LabError(Exception):
    """What is wrong and what to do next, in a sentence or two."""

    def _render_traceback_(self) -> list[str]:
        """IPython calls this: show the sentence, not forty lines of stack."""
        return [f"LabError: {self}"]


def first_line(problem: BaseException, longest: int = 300) -> str:
    """The start of an error's text, for use inside a sentence."""
    text = str(problem).strip()
    return text.splitlines()[0][:longest].rstrip(".") if text else type(problem).__name__


# Spark's condition → what it means here, and what to do. Spark's own sentence stands between the two.
EXPLANATIONS = {
    "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT": (
        "Too few slots",
        "Real-Time Mode runs every task of every stage at once. Start the lab with more: start_lab(slots=…); slots "
        "are threads, so more than cores is fine.",
    ),
    "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY": (
        "Spark refuses the checkpoint folder",
        "A run was killed while it wrote its very first checkpoint and left a part of it there. Nothing was committed "
        "yet: delete the folder and start again, and the query reads from its first event.",
    ),
    "STREAMING_REAL_TIME_MODE.CHECKPOINT_FORMAT_V1_NOT_SUPPORTED": (
        "Spark refuses the checkpoint folder",
        "It was written by a micro-batch query in format 1. Two ways on: let micro-batch queries write format 2 from "
        "their first batch (spark.sql.streaming.stateStore.checkpointFormatVersion=2, with state also RocksDB); or "
        "give the Real-Time query a fresh folder and, as startingOffsets, the old one's last committed offsets "
        "(starting_offsets(folder)). The second loses no event, but the state: counts start anew.",
    ),
    "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL": (
        "Spark refuses the interval",
        "Choose a longer one: it is how often Spark checkpoints, not how long an event waits.",
    ),
}


def explain(problem: BaseException | None) -> str:
    """Spark's error as a sentence, with a way out where there is a known one."""
    text = str(problem).strip() if problem else "the query ended by itself"
    for condition, (what, remedy) in EXPLANATIONS.items():
        found = re.search(rf"\[?{re.escape(condition)}\]? ?([^\n]*)", text)
        if found:
            said = re.sub(r" SQLSTATE: \w+$", "", found[1].strip())
            return " ".join(part for part in (f"{what}: [{condition}]", said, remedy) if part)
    return f"Spark stopped the query: {text.splitlines()[0][:600]}"
