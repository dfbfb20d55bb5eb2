"""Static figures: they render whatever was measured, can be read, and keep their colours."""

from functools import cache
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from helpers import figures
from helpers.errors import LabError
from helpers.evidence import batches, suspects
from helpers.evidence.lag import Seen
from helpers.figures.looks import look_of, looks
from helpers.figures.phases import PHASES, itemised
from helpers.figures.style import WIDTH
from helpers.ruler.load import SAMPLE
from helpers.ruler.statistics import ms
from helpers.ruler.trace import Trace

START = 1_000_000.25
BATCHES = [  # a batch began a second and a quarter before the run, and 1 s and 4 s into it
    {"batch": number, "timestamp": f"1970-01-12T13:46:{second}Z", "rows": 1, "ms": {"triggerExecution": 900}}
    for number, second in enumerate(("39.000", "41.250", "44.250"))
]


def trace_of(name: str, latency, rate: int = 100, trigger: dict | None = None) -> Trace:
    """A trace with these latencies (ms): data to draw, not a measurement."""
    latency = np.asarray(latency, float)
    samples = np.zeros(len(latency), SAMPLE)
    samples["due"] = START + np.arange(len(latency)) / rate
    samples["appended"] = samples["due"] + latency / 1000
    samples["received"] = samples["appended"] + 0.001
    one = {"measure_from": START, "measure_to": START + len(latency) / rate, "sent": len(latency), "lost": 0}
    one["progress"] = BATCHES
    one["cost"] = {"cores": 0.5}
    return Trace(name, samples, {"rounds": [one], "trigger": trigger or {}, "load": {"rate": rate}})


def lognormal(middle: float, count: int = 2_000, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(np.log(middle), 0.5, count)


MICRO, REAL = trace_of("micro-batch", lognormal(250)), trace_of("Real-Time Mode", lognormal(2, seed=2))
TAX = {"latestOffset": 4, "queryPlanning": 22, "walCommit": 31, "addBatch": 140, "commitOffsets": 28}
INPUTS = {
    "two modes": [MICRO, REAL],
    "one trace": [REAL],
    "three traces": [trace_of("untuned micro-batch", lognormal(400)), MICRO, REAL],
    "one sample": [trace_of("micro-batch", [3.0])],
    "equal values": [trace_of("micro-batch", np.full(300, 7.0)), trace_of("Real-Time Mode", np.full(300, 7.0))],
    "zero and less": [trace_of("ruler", [-3.0, 0.0, 0.0, 0.4, 1.0]), REAL],
    "very slow": [trace_of("micro-batch", lognormal(30_000)), REAL],
    "long names": [trace_of("micro-batch, fetch wait 500 ms", lognormal(9)), trace_of("Real-Time, 60 s", lognormal(3))],
}
DRAWN = {
    "distributions": figures.distributions,
    "nines": figures.nines,
    "over_time": lambda traces: figures.over_time(traces, boundaries=batches.starts(traces[0])),
    "u_curve": lambda traces: figures.u_curve(
        [500, 100, 0][: len(traces)], traces, busy=[0.2] * len(traces), reference=REAL
    ),
    "ladder": lambda traces: figures.ladder(traces, ["the laptop's file system"] * (len(traces) - 1)),
    "staircase": figures.staircase,
    "dashboard": lambda traces: figures.dashboard(traces[0], mark=(0.1, 0.2)),
    "waterfall": lambda traces: figures.waterfall({trace.name: suspects.typical_legs(trace, 50) for trace in traces}),
    "knee": lambda traces: figures.knee({"micro-batch": traces[:1], "real-time": traces[-1:]}, 90),
    "blind": lambda traces: figures.blind(traces[0], [Seen(0.1, 20, 18), Seen(0.4, 50, 20)]),
    "clocks": lambda traces: figures.clocks([0, 1_000, 5_000], {trace.name: [-5.0, 0.0, 700.0] for trace in traces}),
    "tax_bars": lambda traces: figures.tax_bars([one.name for one in traces], [TAX for _ in traces]),
}
LATENCY = "latency (ms, log scale)"
LABELS = {
    "distributions": {LATENCY, "events (% per bar)"},
    "nines": {LATENCY, "events at least this fast (%)"},
    "over_time": {LATENCY, "measured time (s); lines: p50 and p99 of each 1 s"},
    "u_curve": {LATENCY, "busy (%)", "requested trigger interval (ms)"},
    "ladder": {"latency (ms)"},
    "staircase": {"the event was due at (s)", "its result was there at (s)"},
    "dashboard": {LATENCY, "measured time (s)", "cores", "backlog", "events"},
    "waterfall": {"time (ms), each bar on a scale of its own"},
    "knee": {LATENCY, "CPU s per\nmillion events", "offered load (events/s); dashed: what one task can do"},
    "blind": {"measured time (s)", "events without a result"},
    "clocks": {"the event arrived at (s)", "“latency” (ms)"},
    "tax_bars": {"time per batch (ms)"},
}


def words(figure) -> list[Text]:
    """The texts that really are drawn."""
    drawn: list[Text | None] = []

    class Canvas(FigureCanvasAgg):
        def get_renderer(self):
            renderer = super().get_renderer()
            if not hasattr(renderer, "plain_draw_text"):
                renderer.plain_draw_text = renderer.draw_text
                renderer.draw_text = lambda *args, **more: (
                    drawn.append(more.get("mtext")),
                    renderer.plain_draw_text(*args, **more),
                )
            return renderer

    Canvas(figure).draw()
    drawn += [text for text in figure.findobj(Text) if "\n" in text.get_text()]  # these are drawn line by line
    return list({id(text): text for text in drawn if text is not None and text.get_text().strip()}.values())


@cache
def drawn(name: str, inputs: str) -> tuple[Figure, list[Text]]:
    """A figure and its texts: drawn once, looked at by several tests."""
    figure = DRAWN[name](INPUTS[inputs])
    return figure, words(figure)


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_drawn_from_any_measurement(name, inputs):
    figure, _ = drawn(name, inputs)
    assert figure.get_figwidth() == WIDTH
    assert np.asarray(figure.canvas.buffer_rgba()).std() > 5, "the picture is blank"


@pytest.mark.parametrize("name", DRAWN)
def test_every_axis_says_its_unit(name):
    figure, _ = drawn(name, "two modes")
    labels = {label for ax in figure.axes if ax.axison for label in (ax.get_xlabel(), ax.get_ylabel()) if label}
    assert labels == LABELS[name]


@pytest.mark.parametrize("name", DRAWN)
def test_text_is_large_enough_for_the_back_row(name):
    assert min(text.get_fontsize() for text in drawn(name, "two modes")[1]) >= 13


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("name", ["distributions", "ladder", "tax_bars", "nines"])
def test_no_text_lies_on_another_or_leaves_the_figure(name, inputs):
    figure, texts = drawn(name, inputs)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    assert len(boxes) > 3, "nothing was drawn"
    for (first, one), (second, other) in combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        down = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(across, down) < 2, f"{first!r} and {second!r} overlap"
    for text, box in boxes:
        assert box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1, f"{text!r} leaves the figure"
        assert box.y0 >= -1 and box.y1 <= figure.bbox.y1 + 1, f"{text!r} leaves the figure"


def test_p50_and_p99_are_written_beside_their_marks():
    shown = {text.get_text() for text in drawn("distributions", "two modes")[1]}
    for trace in (MICRO, REAL):
        assert {f"p50 {ms(trace.p50)} ms", f"p99 {ms(trace.p99)} ms", trace.name} <= shown


def test_the_log_axis_has_plain_numbers():
    shown = {text.get_text() for text in drawn("distributions", "two modes")[1]}
    assert {"1", "10", "100", "1,000"} <= shown


def test_nines_pass_through_the_percentiles():
    figure = figures.nines([REAL])
    line = figure.axes[0].lines[0]
    for nines, which in ((1, 90), (2, 99)):
        at = np.interp(nines, line.get_ydata(), line.get_xdata())
        assert at == pytest.approx(REAL.percentile(which), rel=0.03)


def test_a_mode_keeps_its_colour_whatever_its_run_is_called():
    real, micro = "#0072B2", "#D55E00"
    assert [look_of(name).colour for name in ("micro-batch", "Micro-batch, trigger 0")] == [micro] * 2
    assert [look_of(name).colour for name in ("Real-Time Mode", "real-time, 60 s", "RTM")] == [real] * 3
    assert look_of(trace_of("60 s", [1.0], trigger={"realTime": "60 seconds"})).colour == real
    assert look_of(trace_of("250 ms", [1.0], trigger={"processingTime": "250 ms"})).colour == micro
    assert look_of("untuned micro-batch").colour not in (micro, real)


def test_the_compared_modes_differ_in_colour_line_and_marker():
    chosen = looks(["micro-batch", "untuned micro-batch", "Real-Time Mode", "ruler", "Trigger.Continuous", "Flink"])
    assert len({look.colour for look in chosen}) == len({str(look.line) for look in chosen}) == 6
    assert len({look.marker for look in chosen}) == 6


def test_a_step_of_the_ladder_says_what_it_took_away_and_whose_that_was():
    steps = [
        trace_of("micro-batch, as installed", np.full(99, 120.0)),
        trace_of("micro-batch", np.full(99, 50.0)),
        REAL,
    ]
    shown = [
        text.get_text() for text in words(figures.ladder(steps, ["the laptop's file system", "every batch's price"]))
    ]
    assert "p50 50, p99 50 ms\n−70 ms: the laptop's file system" in shown
    with pytest.raises(LabError, match="3 steps have 2 differences, but 1"):
        figures.ladder(steps, ["one"])


def test_a_run_whose_backlog_grows_is_called_that_in_a_figure():
    grows = trace_of("micro-batch", 5 + np.arange(600) * 3.0)
    for draw in (figures.distributions, figures.nines, figures.over_time, figures.staircase):
        assert any("micro-batch (backlog grows)" in text.get_text() for text in words(draw([grows])))


def test_two_runs_of_one_mode_can_be_told_apart():
    first, second, third = looks(["Real-Time, 5 s", "Real-Time, 10 s", "Real-Time, 60 s"])
    assert len({first.colour, second.colour, third.colour}) == 3
    assert len({str(first.line), str(second.line), str(third.line)}) == 3
    assert first == look_of("Real-Time Mode")


def test_another_name_keeps_the_colour_it_got_first():
    one, other = look_of("parquet"), look_of("csv")
    assert one.colour != other.colour
    assert (look_of("csv"), look_of("parquet")) == (other, one)


def test_what_spark_does_not_itemise_is_other():
    parts = itemised(TAX | {"triggerExecution": 250, "somethingNew": 5})
    assert sum(parts.values()) == 250
    assert parts["other"] == 25
    assert list(parts) == list(PHASES)


def test_batch_boundaries_are_where_the_batches_of_the_run_began():
    figure, texts = drawn("over_time", "two modes")
    lines = [line for line in figure.axes[0].lines if line.get_label() == "batch boundary"]
    assert [line.get_xdata()[0] for line in lines] == pytest.approx([1.0, 4.0])
    assert [text.get_text() for text in texts].count("batch boundary") == 1
    assert "batch boundary" not in {line.get_label() for line in figures.over_time([MICRO]).axes[0].lines}


def test_the_same_trace_gives_the_same_picture():
    long = trace_of("micro-batch", lognormal(250, 20_000), rate=1_000)
    first, second = (figures.as_png(figures.over_time([long]), dpi=30) for _ in range(2))
    assert first == second


def test_figures_leave_no_global_state_behind():
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    for draw in DRAWN.values():
        figures.as_png(draw([REAL]), dpi=30)
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def test_figures_look_the_same_whatever_the_notebook_set_before():
    wanted = figures.as_png(figures.nines([REAL]))
    with matplotlib.rc_context({"font.size": 6, "axes.facecolor": "black", "xtick.labelsize": 5}):
        assert figures.as_png(figures.nines([REAL])) == wanted
