"""What people see. Notebooks import from here; each module is one kind of figure."""

from helpers.figures.latency import (
    as_png,
    boundaries_of,
    distributions,
    nines,
    over_time,
    show,
    tax_bars,
    u_curve,
)

__all__ = ["as_png", "boundaries_of", "distributions", "nines", "over_time", "show", "tax_bars", "u_curve"]
