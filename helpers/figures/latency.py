"""Static figures, in one visual style: the same mode has the same colour in every lesson.

Each function takes traces and returns a matplotlib Figure that belongs to nobody else (no pyplot, so
nothing leaks and no window opens). `show(figure)` puts it into a notebook, `as_png(figure)` into a file.
"""

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from helpers.evidence.batches import began
from helpers.ruler.trace import Trace, redraw

WIDTH, HEIGHT, DPI = 10.0, 4.5, 110
INK, FAINT = "#222222", "#D9D9D9"
FLOOR = 0.1  # ms: where a log axis begins, and where zero and below are drawn
BINS_PER_DECADE = 24
POINTS = 3_000  # of one trace in a scatter
LINES = {50: "-", 99: (0, (4, 1.5))}  # by percentile
STYLE = {
    "figure.facecolor": "white",
    "figure.dpi": DPI,
    "savefig.facecolor": "white",
    "font.size": 13,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": 14,
    "axes.titlesize": 17,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": "#777777",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.8,
    "xtick.color": "#777777",
    "ytick.color": "#777777",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 13,
    "ytick.labelsize": 13,
    "legend.frameon": False,
    "legend.fontsize": 13,
    "lines.linewidth": 2.4,
}


def style() -> AbstractContextManager:
    """The series' look, whatever a notebook did to matplotlib's settings before."""
    return matplotlib.style.context(["default", STYLE])


# -- who has which colour


@dataclass(frozen=True)
class Look:
    """How one trace is drawn. The line and the marker say the same as the colour does."""

    colour: str
    line: object = "-"
    marker: str = "o"

    @property
    def text(self) -> str:
        """The colour, dark enough to read as text."""
        return mix(self.colour, "black", 0.25)


# Okabe and Ito's colour-blind safe set
FAMILIES = {
    "real-time": Look("#0072B2", "-", "o"),
    "micro-batch": Look("#D55E00", (0, (6, 2)), "s"),
    "untuned": Look("#E69F00", (0, (2, 1.5)), "^"),
    "continuous": Look("#CC79A7", (0, (8, 2, 2, 2)), "D"),
    "flink": Look("#009E73", (0, (4, 1.5, 1, 1.5)), "v"),
    "ruler": Look("#666666", (0, (1, 1)), "P"),
}
# The first that matches a name wins: "untuned micro-batch" is untuned.
NAMES = {
    "untuned": r"untuned",
    "ruler": r"ruler|confluent|kafka-python|loop",
    "flink": r"flink",
    "continuous": r"continuous",
    "real-time": r"real[\s_-]*time|\breal\b|\brtm\b",
    "micro-batch": r"micro",
}
TRIGGERS = {"realTime": "real-time", "continuous": "continuous", "processingTime": "micro-batch"}
OTHERS = ("#56B4E9", "#882255", "#999933", "#332288", "#44AA99", "#CC6677")
_seen: dict[str, int] = {}


def family_of(what: Trace | str) -> str | None:
    """Which of the compared modes this is, by its name or else by its trigger."""
    name = what.name if isinstance(what, Trace) else what
    for family, pattern in NAMES.items():
        if re.search(pattern, name, re.IGNORECASE):
            return family
    triggers = what.meta.get("trigger", {}) if isinstance(what, Trace) else {}
    return next((family for key, family in TRIGGERS.items() if key in triggers), None)


def look_of(what: Trace | str) -> Look:
    """The look of a mode; any other name gets one of its own and keeps it."""
    family = family_of(what)
    if family is not None:
        return FAMILIES[family]
    name = what.name if isinstance(what, Trace) else what
    number = _seen.setdefault(name, len(_seen))
    lines = [look.line for look in FAMILIES.values()]
    return Look(OTHERS[number % len(OTHERS)], lines[number % len(lines)], "osD^vP"[number % 6])


def colour_of(what: Trace | str) -> str:
    """The colour of a trace or of its name, the same in every figure of the series."""
    return look_of(what).colour


def looks(those: Sequence[Trace | str]) -> list[Look]:
    """One look each. Several runs of one mode share its hue, in different shades, lines and markers."""
    chosen: list[Look] = []
    families: dict[str, int] = {}
    shades = [
        (0, "white"),
        (0.45, "white"),
        (0.45, "black"),
        (0.65, "white"),
        (0.65, "black"),
        (0.25, "white"),
        (0.25, "black"),
    ]
    others = [look for look in FAMILIES.values()]
    for one in those:
        look, family = look_of(one), family_of(one)
        number = families.get(family, 0) if family else 0
        if family:
            families[family] = number + 1
        if number:
            share, towards = shades[number % len(shades)]
            twin = others[number % len(others)]
            look = Look(mix(look.colour, towards, share), twin.line, twin.marker)
        chosen.append(look)
    return chosen


def mix(colour: str, towards: str, share: float) -> str:
    """`colour` with a share of another."""
    return to_hex((1 - share) * np.array(to_rgb(colour)) + share * np.array(to_rgb(towards)))


# -- words and axes


def ms(value: float) -> str:
    """Milliseconds as people say them: 2.1, 15, 1,017."""
    return f"{value:,.1f}" if abs(value) < 9.95 else f"{value:,.0f}"


def plain(value: float, _position: object = None) -> str:
    """0.1, 1, 10, 100, 1,000: no powers."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def log_ms(ax: Axes, which: str, low: float, high: float, label: str = "latency (ms, log scale)") -> None:
    """Make one axis logarithmic, in milliseconds, with plain numbers."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    getattr(ax, f"set_{which}scale")("log")
    getattr(ax, f"set_{which}lim")(low, high)
    axis.set_major_locator(LogLocator(10, numticks=12))
    axis.set_minor_locator(LogLocator(10, subs=range(2, 10), numticks=12))
    if np.log10(high / low) < 1.3:  # too few decades to read a value from: name the steps between
        axis.set_minor_locator(LogLocator(10, subs=(2, 5), numticks=12))
        axis.set_minor_formatter(FuncFormatter(plain))
    else:
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(plain))
    ax.tick_params(axis=which, which="both", labelsize=STYLE["xtick.labelsize"])
    axis.set_label_text(label)


def on_log_axis(latency: np.ndarray) -> np.ndarray:
    """Clock rounding can give zero or less; a log axis cannot show that."""
    return np.maximum(latency, FLOOR)


def bins(low: float, high: float) -> np.ndarray:
    """Edges of equal width on a log axis, the same for every trace."""
    first = np.floor(np.log10(low) * BINS_PER_DECADE)
    last = np.ceil(np.log10(high) * BINS_PER_DECADE)
    return 10 ** (np.arange(first, max(last, first + 1) + 1) / BINS_PER_DECADE)


def new_figure(label: str, height: float = HEIGHT) -> Figure:
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
    figure.set_label(label)
    return figure


def legend(ax: Axes, title: str, handles: list | None = None, inches: float = WIDTH - 1.4) -> None:
    """The title, and under it what everything is called: never in the way of the data."""
    shown = handles or ax.get_legend_handles_labels()[0]
    columns = _columns([one.get_label() for one in shown], inches)
    rows = -(-len(shown) // columns)
    ax.legend(
        handles=shown,
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=2.2,
        columnspacing=1.6,
    )
    ax.set_title(title, pad=12 + 21 * rows)


def _columns(labels: list[str], inches: float) -> int:
    """How many columns of a legend fit side by side (matplotlib fills them top to bottom)."""
    for columns in range(min(len(labels), 5), 1, -1):
        wide = [max(map(len, part)) for part in np.array_split(labels, columns)]
        if sum(0.088 * letters + 0.85 for letters in wide) <= inches:
            return columns
    return 1


def limits(traces: Sequence[Trace], room_low: float = 1.0, room_high: float = 1.0) -> tuple[float, float]:
    """From the fastest to the slowest event, with room for labels beside p50 and p99."""
    every = [on_log_axis(trace.latency) for trace in traces]
    low = min(min(np.percentile(one, 0.1), np.percentile(one, 50) / room_low) for one in every)
    high = max(max(one.max(), np.percentile(one, 99) * room_high) for one in every)
    return float(low) / 1.15, float(high) * 1.15


# -- the figures


def distributions(traces: Sequence[Trace], title: str = "Latency distributions") -> Figure:
    """Histogram of each trace on a log axis; above it a bar from its p50 to its p99, with the values."""
    with style():
        height = 0.56 * len(traces)
        figure = new_figure("latency distributions", HEIGHT - 1.1 + height)
        marks, ax = figure.subplots(2, 1, sharex=True, height_ratios=[height, HEIGHT - 2.1])
        figure.get_layout_engine().set(hspace=0, h_pad=0.1)
        low, high = limits(traces, room_low=9, room_high=9)
        edges = bins(low, high)
        for number, (trace, look) in enumerate(zip(traces, looks(traces), strict=True)):
            counts, _ = np.histogram(np.clip(on_log_axis(trace.latency), edges[0], edges[-1]), edges)
            share = 100 * counts / len(trace.samples)
            ax.stairs(share, edges, fill=True, color=look.colour, alpha=0.28, zorder=2)
            outline = np.where(counts == 0, np.nan, share)  # no line where there is nothing
            ax.stairs(outline, edges, color=look.colour, linewidth=1.8, linestyle=look.line, zorder=3)
            _mark(marks, ax, len(traces) - 1 - number, trace, look)
        log_ms(ax, "x", edges[0], edges[-1])
        ax.set_ylim(0, None)
        ax.yaxis.set_major_locator(MaxNLocator(4))
        ax.set_ylabel("events (% per bar)")
        ax.grid(False, axis="x", which="minor")
        marks.set_ylim(-0.45, len(traces) - 0.3)
        marks.set_axis_off()
        marks.set_title(title, pad=8)
    return figure


def _mark(marks: Axes, ax: Axes, row: float, trace: Trace, look: Look) -> None:
    """●──◆ from p50 to p99, each with its value, and thin lines down into the histogram."""
    ends = {"p50": trace.p50, "p99": trace.p99}
    places = {name: max(value, FLOOR) for name, value in ends.items()}
    marks.plot(list(places.values()), [row, row], color=look.colour, linewidth=3, solid_capstyle="butt")
    for (name, place), marker in zip(places.items(), "oD", strict=True):
        marks.plot(place, row, marker, color=look.colour, markersize=10, markeredgecolor="white", zorder=4)
        marks.annotate(
            f"{name} {ms(ends[name])} ms",
            (place, row),
            xytext=(-11 if name == "p50" else 11, 0),
            textcoords="offset points",
            ha="right" if name == "p50" else "left",
            va="center",
        )
        ax.axvline(place, color=look.colour, linewidth=1.2, linestyle=":", zorder=1)
    marks.annotate(
        trace.name,
        (np.sqrt(places["p50"] * places["p99"]), row),
        xytext=(0, 9),
        textcoords="offset points",
        ha="center",
        va="bottom",
        weight="bold",
        color=look.text,
    )


def nines(traces: Sequence[Trace], title: str = "How slow are the slowest events?") -> Figure:
    """Share of events at or below each latency, in nines: each step up is a ten times rarer event."""
    with style():
        figure = new_figure("latency in nines")
        ax = figure.subplots()
        low, high = limits(traces)
        for trace, look in zip(traces, looks(traces), strict=True):
            x, y = _in_nines(trace)
            ax.plot(x, y, color=look.colour, linestyle=look.line, drawstyle="steps-post", label=trace.name)
            ax.plot(x[-1:], y[-1:], look.marker, color=look.colour, markersize=8)
        log_ms(ax, "x", low, high)
        ax.grid(False, axis="x", which="minor")
        top = max(np.log10(max(len(trace.samples), 10)) for trace in traces)
        ax.set_ylim(0, top + 0.25)
        ticks = np.arange(int(top) + 1)
        ax.yaxis.set_major_locator(FixedLocator(ticks))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda nines, _: f"{100 * (1 - 10.0**-nines):.10g} %"))
        ax.set_ylabel("events at least this fast (%)")
        legend(ax, title)
    return figure


def _in_nines(trace: Trace, points: int = 1_500) -> tuple[np.ndarray, np.ndarray]:
    """Sorted latencies against -log10 of the share that is slower, thinned where they are dense."""
    values, share = trace.ecdf()
    ranks = np.unique(len(values) - np.geomspace(1, len(values), points).round().astype(int))
    slower = 1 - np.concatenate([[0.0], share[:-1]])
    return on_log_axis(values[ranks]), -np.log10(slower[ranks])


def over_time(
    traces: Sequence[Trace],
    window: float = 1.0,
    boundaries: Sequence[float] | None = None,
    title: str = "Latency over time",
) -> Figure:
    """Single events as points, p50 and p99 of each window as lines; batch boundaries (seconds) if given."""
    with style():
        figure = new_figure("latency over time", HEIGHT + 0.4)
        ax = figure.subplots()
        handles = []
        for trace, look in zip(traces, looks(traces), strict=True):
            keep = some_of(len(trace.samples))
            x, y = trace.elapsed()[keep], on_log_axis(trace.latency)[keep]
            ax.plot(x, y, ".", color=look.colour, alpha=0.16, markersize=4, markeredgewidth=0, rasterized=True)
            for which in (50, 99):
                at, value = trace.windows(window, which)
                handles += percentile_line(ax, at + window / 2, value, look, which, 5.5, label=f"{trace.name} p{which}")
        low, high = limits(traces)
        log_ms(ax, "y", low, high)
        ax.grid(False, axis="y", which="minor")
        end = max(float(trace.elapsed().max()) for trace in traces)
        ax.set_xlim(0, max(end, window))
        ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        ax.set_xlabel(f"measured time (s); lines: p50 and p99 of each {window:g} s")
        if boundaries is not None and len(boundaries):
            inside = [at for at in boundaries if 0 <= at <= ax.get_xlim()[1]]
            tall = 1 if len(inside) <= 60 else 0.05
            handles += [
                ax.axvline(at, ymax=tall, color="#444444", linewidth=1, zorder=1, label="batch boundary")
                for at in inside
            ][:1]
        legend(ax, title, handles)
    return figure


def percentile_line(
    ax: Axes, x: np.ndarray, values: np.ndarray, look: Look, which: float, size: float, **more: object
) -> list[Line2D]:
    """The median solid and filled, the tail dashed and hollow."""
    return ax.plot(
        x,
        on_log_axis(values),
        color=look.colour,
        linestyle=LINES[which],
        marker=look.marker,
        markersize=size,
        markerfacecolor=look.colour if which == 50 else "white",
        **more,
    )


def boundaries_of(trace: Trace) -> list[float]:
    """When each batch of this run began, in its measured seconds, by Spark's own report."""
    found, before = [], 0.0
    for one in trace.rounds:
        begun = [began(batch) for batch in one.get("progress", [])]
        found += [at - one["measure_from"] + before for at in begun if one["measure_from"] <= at < one["measure_to"]]
        before += one["measure_to"] - one["measure_from"]
    return found


def some_of(count: int) -> np.ndarray:
    """The same few of many, every time."""
    if count <= POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(1).choice(count, POINTS, replace=False))


def percentile_bars(traces: Sequence[Trace], title: str = "Percentiles with 95 % intervals") -> Figure:
    """p50 to p99.9 side by side on a log axis; the thin lines are block-bootstrap intervals."""
    which = {"p50": 50, "p95": 95, "p99": 99, "p99.9": 99.9}
    with style():
        figure = new_figure("percentiles with intervals")
        ax = figure.subplots()
        wide = 0.82 / len(traces)
        low, high = np.inf, FLOOR
        for number, (trace, look) in enumerate(zip(traces, looks(traces), strict=True)):
            place = np.arange(len(which)) + (number - (len(traces) - 1) / 2) * wide
            true = np.array([trace.percentile(one) for one in which.values()])
            value = on_log_axis(true)
            drawn = on_log_axis(redraw(trace, list(which.values()), 200, np.random.default_rng(1)))
            bottom, top = np.percentile(drawn, [2.5, 97.5], axis=0)
            bottom, top = np.minimum(bottom, value), np.maximum(top, value)
            ax.bar(place, value, wide * 0.92, color=look.colour, alpha=0.85, label=trace.name, zorder=2)
            ax.vlines(place, bottom, top, color=INK, linewidth=1.8, zorder=3)
            for x, y, text in zip(place, top, map(ms, true), strict=True):
                size = 13 if len(traces) < 4 else 12
                ax.annotate(text, (x, y), (0, 5), textcoords="offset points", ha="center", va="bottom", size=size)
            low, high = min(low, value.min(), bottom.min()), max(high, top.max())
        log_ms(ax, "y", low / 3, high * 2.2)
        ax.grid(False, axis="y", which="minor")
        ax.grid(False, axis="x")
        ax.set_xticks(range(len(which)), which)
        ax.tick_params(axis="x", length=0, labelsize=14)
        ax.set_xlabel("percentile of events (values in ms)")
        legend(ax, title)
    return figure


def u_curve(
    x: Sequence[float],
    traces: Sequence[Trace],
    xlabel: str = "requested trigger interval (ms)",
    busy: Sequence[float] | None = None,
    reference: Trace | None = None,
    title: str = "A shorter trigger stops helping",
    below: dict[str, Sequence[float]] | None = None,
) -> Figure:
    """p50 and p99 against a setting; `reference` as a level line.

    Below it, as bars: the share of time busy (0 to 1), or whatever else a setting costs, by its axis label.
    """
    below = dict(below or {}) | ({"busy (%)": 100 * np.asarray(busy, float)} if busy is not None else {})
    with style():
        figure = new_figure("latency against the trigger interval", HEIGHT + max(0.4, 1.6 * len(below)))
        heights = [3] + [1.1] * len(below)
        ax, *panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False).flat
        bottom = panels[-1] if panels else ax
        place = np.arange(len(x))
        look = looks([traces[0]])[0]
        values = {}
        for which in (50, 99):
            values[which] = on_log_axis(np.array([trace.percentile(which) for trace in traces]))
            percentile_line(ax, place, values[which], look, which, 9, label=f"p{which}")
            for at, value in zip(place, values[which], strict=True):
                up = which == 99
                ax.annotate(
                    ms(value),
                    (at, value),
                    (0, 9 if up else -9),
                    textcoords="offset points",
                    ha="center",
                    va="bottom" if up else "top",
                )
        lowest, highest = values[50].min(), values[99].max()
        if reference is not None:
            other = looks([reference])[0]
            for which, line in LINES.items():
                level = max(reference.percentile(which), FLOOR)
                ax.axhline(level, color=other.colour, linestyle=line)
                ax.annotate(
                    f"{reference.name} p{which} {ms(level)} ms",
                    (1, level),
                    (-4, 4),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    ha="right",
                    va="bottom",
                    color=other.text,
                )
                lowest, highest = min(lowest, level), max(highest, level)
        log_ms(ax, "y", lowest / 2.5, highest * 3)
        ax.grid(False, axis="y", which="minor")
        ax.grid(False, axis="x")
        ax.set_xlim(-0.5, len(x) - 0.5)
        for panel, (label, values) in zip(panels, below.items(), strict=True):
            panel.bar(place, values, 0.6, color="#8A8A8A", zorder=2)
            for at, value in zip(place, values, strict=True):
                text = plain(round(value)) if max(values) >= 10 else f"{value:.2f}"
                panel.annotate(text, (at, value), (0, 3), textcoords="offset points", ha="center")
            panel.set_ylim(0, 1.35 * max(values))
            panel.yaxis.set_major_locator(MaxNLocator(2))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            panel.set_ylabel(label)
            panel.grid(False, axis="x")
        if busy is not None:
            bottom.set_ylim(0, 135)
            bottom.set_yticks([0, 50, 100])
        bottom.set_xticks(place, [plain(value) if value >= 1 else f"{value:g}" for value in x])
        bottom.set_xlabel(xlabel)
        figure.align_ylabels()
        legend(ax, title)
    return figure


PHASES = {
    "latestOffset": "#56B4E9",
    "getBatch": "#F0E442",
    "queryPlanning": "#CC79A7",
    "walCommit": "#E69F00",
    "addBatch": "#0072B2",
    "commitOffsets": "#D55E00",
    "other": "#AAAAAA",
}


def tax_bars(
    names: Sequence[str], parts: Sequence[dict[str, float]], title: str = "Where a batch spends its time"
) -> Figure:
    """One stacked bar per name: the milliseconds of a batch, by phase of Spark's `durationMs`.

    What `triggerExecution`, the whole, has beyond the named phases is shown as "other".
    """
    rows = [itemised(one) for one in parts]
    whole = max([sum(row.values()) for row in rows] + [1e-9])
    used = [phase for phase in PHASES if any(row[phase] > 0 for row in rows)] or ["other"]
    with style():
        figure = new_figure("where a batch spends its time", max(3.0, 1.9 + 0.75 * len(names)))
        ax = figure.subplots()
        left = np.zeros(len(names))
        for phase in used:
            width = np.array([row[phase] for row in rows])
            place = np.arange(len(names))
            ax.barh(
                place, width, 0.62, left, color=PHASES[phase], edgecolor="white", linewidth=1.2, label=phase, zorder=2
            )
            for at, start, value in zip(place, left, width, strict=True):
                if value / whole > 0.012 * (len(ms(value)) + 0.8):  # there is room for the number
                    dark = np.dot(to_rgb(PHASES[phase]), [0.3, 0.6, 0.1]) > 0.5
                    ax.text(
                        start + value / 2,
                        at,
                        ms(value),
                        ha="center",
                        va="center",
                        color=INK if dark else "white",
                    )
            left += width
        for at, total in enumerate(left):
            ax.annotate(f"{ms(total)} ms", (total, at), (6, 0), textcoords="offset points", va="center", weight="bold")
        ax.set_xlim(0, whole * 1.13)
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(axis="y", length=0, labelsize=14)
        ax.invert_yaxis()
        ax.grid(False, axis="y")
        ax.set_xlabel("time per batch (ms)")
        legend(ax, title, inches=WIDTH - 0.6 - 0.12 * max(map(len, names)))
    return figure


def itemised(durations: dict[str, float]) -> dict[str, float]:
    """`durationMs` by phase, in order, with the rest of the whole as "other"."""
    named = {phase: float(durations.get(phase, 0)) for phase in PHASES}
    whole = float(durations.get("triggerExecution", 0))
    listed = sum(value for phase, value in durations.items() if phase != "triggerExecution")
    named["other"] += listed - sum(named.values()) + max(0.0, whole - listed)
    return named


# -- out of here


def as_png(figure: Figure, dpi: float | None = None) -> bytes:
    """The figure as the bytes of a PNG file."""
    file = io.BytesIO()
    with style():
        figure.savefig(file, format="png", dpi=dpi or figure.dpi)
    return file.getvalue()


def show(figure: Figure, alt: str | None = None) -> None:
    """Put the figure into the notebook. Its text form never changes, so that strict nbval can compare it."""
    from IPython.display import display

    alt = alt or figure.get_label() or "figure"
    bundle = {"image/png": as_png(figure), "text/plain": f"<figure: {alt}>"}
    display(bundle, raw=True, metadata={"image/png": {"alt": alt}})
