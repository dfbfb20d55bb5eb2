"""The observer effect: does drawing live disturb what is measured?

Measured where it matters, in a real Jupyter kernel whose messages are read, with the live view on and off in turn.
"""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from jupyter_client.manager import KernelManager

from helpers.commands.queries import REAL, TUNED, forward
from helpers.engines.spark import start_spark, stop_spark
from helpers.errors import LabError
from helpers.figures.live import LiveView
from helpers.ruler.experiment import Setup, measure, there_and_back
from helpers.ruler.load import Load
from helpers.ruler.trace import Trace
from helpers.ruler.watch import Watch
from helpers.settings import ROOT

WATCHES = {"live view off": Watch, "live view on": LiveView}


def live_view_on_and_off(load: Load, rounds: int) -> dict[str, Trace]:
    """Real-Time Mode with the live view on and off, interleaved, from a kernel of its own."""
    manager = KernelManager(kernel_name="python3", transport_encryption="auto")  # without it the kernel warns
    manager.start_kernel(cwd=str(ROOT))
    client = manager.client()
    client.start_channels()
    frames = 0

    def read(message: dict) -> None:
        nonlocal frames
        frames += message["msg_type"] == "update_display_data"

    with tempfile.TemporaryDirectory() as folder:
        words = json.dumps([asdict(load), rounds, folder])
        try:
            client.wait_for_ready(timeout=60)
            code = f"from helpers.commands.observer import inside_the_kernel; inside_the_kernel(*{words})"
            reply = client.execute_interactive(code, timeout=3600, output_hook=read)["content"]
        finally:
            client.stop_channels()
            manager.shutdown_kernel()
        if reply["status"] != "ok" or not frames:
            raise LabError(f"The live view could not be measured: {reply.get('evalue', 'it drew no frame')}")
        return {name: Trace.load(Path(folder, name)) for name in WATCHES}


def inside_the_kernel(load: dict, rounds: int, folder: str) -> None:
    from helpers.engines.kafka import start_kafka

    traces: dict[str, list[Trace]] = {name: [] for name in WATCHES}
    with start_kafka(say=lambda _: None) as kafka:
        try:
            spark = start_spark()
            query = forward(spark, TUNED, {"kafka.linger.ms": f"{load['linger_ms']:g}"})
            thrown_away = len(WATCHES)  # the first run of each
            for number, name in enumerate(there_and_back(list(WATCHES), rounds + 1)):
                trace = measure(spark, kafka, Setup(name, query, REAL, Load(**load)), WATCHES[name]())
                if number >= thrown_away:
                    traces[name].append(trace)
        finally:
            stop_spark()
    for name, parts in traces.items():
        Trace.join(parts).save(Path(folder, name))
