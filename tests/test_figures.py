"""Static figures: they render whatever was measured, can be read, and keep their colours."""

import io
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

from helpers.figures import latency as figures
from helpers.figures.latency import colour_of, looks
from helpers.ruler.probe import SAMPLE
from helpers.ruler.trace import Trace

START = 1_000_000.25


def trace_of(name: str, latency, rate: int = 100, trigger: dict | None = None) -> Trace:
    """A trace with these latencies (ms): data to draw, not a measurement."""
    latency = np.asarray(latency, float)
    samples = np.zeros(len(latency), SAMPLE)
    samples["due"] = START + np.arange(len(latency)) / rate
    samples["appended"] = samples["due"] + latency / 1000
    samples["received"] = samples["appended"] + 0.001
    one = {"measure_from": START, "measure_to": START + len(latency) / rate, "sent": len(latency), "lost": 0}
    return Trace(name, samples, {"rounds": [one], "trigger": trigger or {}})


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
    "over_time": lambda traces: figures.over_time(traces, boundaries=[0.0, 5.0, 10.0]),
    "percentile_bars": figures.percentile_bars,
    "u_curve": lambda traces: figures.u_curve(
        [500, 100, 0][: len(traces)], traces, busy=[0.2] * len(traces), reference=REAL
    ),
    "tax_bars": lambda traces: figures.tax_bars([one.name for one in traces], [TAX for _ in traces]),
}
LATENCY = "latency (ms, log scale)"
LABELS = {
    "distributions": {LATENCY, "events (% per bar)"},
    "nines": {LATENCY, "events at least this fast (%)"},
    "over_time": {LATENCY, "measured time (s); lines: p50 and p99 of each 1 s"},
    "percentile_bars": {LATENCY, "percentile of events (values in ms)"},
    "u_curve": {LATENCY, "busy (%)", "requested trigger interval (ms)"},
    "tax_bars": {"time per batch (ms)"},
}


def words(figure) -> list[Text]:
    """The texts that really are drawn."""
    drawn: list[Text] = []

    class Canvas(FigureCanvasAgg):
        def get_renderer(self):
            renderer = super().get_renderer()
            if not hasattr(renderer, "plain_draw_text"):
                renderer.plain_draw_text = renderer.draw_text
                renderer.draw_text = lambda *args, **more: (
                    drawn.append(more.get("mtext") or args[-1]),
                    renderer.plain_draw_text(*args, **more),
                )
            return renderer

    Canvas(figure).draw()
    return list({id(text): text for text in drawn if text.get_text().strip()}.values())


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("name", ["over_time", "percentile_bars", "u_curve"])  # the others are drawn below
def test_a_figure_is_drawn_from_any_measurement(name, inputs):
    picture = Image.open(io.BytesIO(figures.as_png(DRAWN[name](INPUTS[inputs]), dpi=50)))
    assert picture.width == figures.WIDTH * 50
    assert np.asarray(picture.convert("L")).std() > 5, "the picture is blank"


@pytest.mark.parametrize("name", DRAWN)
def test_every_axis_says_its_unit(name):
    figure = DRAWN[name](INPUTS["two modes"])
    labels = {label for ax in figure.axes if ax.axison for label in (ax.get_xlabel(), ax.get_ylabel()) if label}
    assert labels == LABELS[name]


@pytest.mark.parametrize("name", DRAWN)
def test_text_is_large_enough_for_the_back_row(name):
    assert min(text.get_fontsize() for text in words(DRAWN[name](INPUTS["two modes"]))) >= 13


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("name", ["distributions", "tax_bars", "nines"])
def test_no_text_lies_on_another_or_leaves_the_figure(name, inputs):
    figure = DRAWN[name](INPUTS[inputs])
    boxes = [(text.get_text(), text.get_window_extent()) for text in words(figure)]
    assert len(boxes) > 3, "nothing was drawn"
    for (first, one), (second, other) in combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        down = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(across, down) < 2, f"{first!r} and {second!r} overlap"
    for text, box in boxes:
        assert box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1, f"{text!r} leaves the figure"
        assert box.y0 >= -1 and box.y1 <= figure.bbox.y1 + 1, f"{text!r} leaves the figure"


def test_p50_and_p99_are_written_beside_their_marks():
    shown = {text.get_text() for text in words(figures.distributions([MICRO, REAL]))}
    for trace in (MICRO, REAL):
        assert {f"p50 {figures.ms(trace.p50)} ms", f"p99 {figures.ms(trace.p99)} ms", trace.name} <= shown


def test_the_log_axis_has_plain_numbers():
    shown = {text.get_text() for text in words(figures.distributions([MICRO, REAL]))}
    assert {"1", "10", "100", "1,000"} <= shown


def test_nines_pass_through_the_percentiles():
    figure = figures.nines([REAL])
    line = figure.axes[0].lines[0]
    for nines, which in ((1, 90), (2, 99)):
        at = np.interp(nines, line.get_ydata(), line.get_xdata())
        assert at == pytest.approx(REAL.percentile(which), rel=0.03)


def test_a_mode_keeps_its_colour_whatever_its_run_is_called():
    assert colour_of("micro-batch") == colour_of("Micro-batch, trigger 0") == "#D55E00"
    assert colour_of("Real-Time Mode") == colour_of("real-time, 60 s") == colour_of("RTM") == "#0072B2"
    assert colour_of(trace_of("60 s", [1.0], trigger={"realTime": "60 seconds"})) == colour_of("Real-Time Mode")
    assert colour_of(trace_of("250 ms", [1.0], trigger={"processingTime": "250 ms"})) == colour_of("micro-batch")
    assert colour_of("untuned micro-batch") != colour_of("micro-batch")


def test_the_compared_modes_differ_in_colour_line_and_marker():
    chosen = looks(["micro-batch", "untuned micro-batch", "Real-Time Mode", "ruler", "Trigger.Continuous", "Flink"])
    assert len({look.colour for look in chosen}) == len({str(look.line) for look in chosen}) == 6
    assert len({look.marker for look in chosen}) == 6


def test_two_runs_of_one_mode_can_be_told_apart():
    first, second, third = looks(["Real-Time, 5 s", "Real-Time, 10 s", "Real-Time, 60 s"])
    assert len({first.colour, second.colour, third.colour}) == 3
    assert len({str(first.line), str(second.line), str(third.line)}) == 3
    assert first.colour == colour_of("Real-Time Mode")


def test_another_name_keeps_the_colour_it_got_first():
    one, other = colour_of("parquet"), colour_of("csv")
    assert one != other
    assert (colour_of("csv"), colour_of("parquet")) == (other, one)


def test_what_spark_does_not_itemise_is_other():
    parts = figures.itemised(TAX | {"triggerExecution": 250, "somethingNew": 5})
    assert sum(parts.values()) == 250
    assert parts["other"] == 25
    assert list(parts) == list(figures.PHASES)


def test_batch_boundaries_are_in_measured_seconds():
    trace = trace_of("Real-Time Mode", lognormal(2, 500))
    stamps = ["1970-01-12T13:46:39.000Z", "1970-01-12T13:46:41.250Z", "1970-01-12T13:46:44.250Z"]
    trace.rounds[0]["progress"] = [{"timestamp": stamp} for stamp in stamps]
    assert figures.boundaries_of(trace) == pytest.approx([1.0, 4.0])
    drawn = figures.over_time([trace], boundaries=figures.boundaries_of(trace))
    assert "batch boundary" in {text.get_text() for text in words(drawn)}


def test_the_same_trace_gives_the_same_picture():
    long = trace_of("micro-batch", lognormal(250, 20_000), rate=1_000)
    assert figures.as_png(figures.over_time([long])) == figures.as_png(figures.over_time([long]))


def test_figures_leave_no_global_state_behind():
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    for draw in DRAWN.values():
        figures.as_png(draw([MICRO, REAL]))
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def test_figures_look_the_same_whatever_the_notebook_set_before():
    wanted = figures.as_png(figures.nines([MICRO, REAL]))
    with matplotlib.rc_context({"font.size": 6, "axes.facecolor": "black", "xtick.labelsize": 5}):
        assert figures.as_png(figures.nines([MICRO, REAL])) == wanted
