"""How we measure: a load on a schedule, a probe in a process of its own, and the trace that it leaves."""
