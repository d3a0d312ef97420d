"""Run the measurements, print them, write `build/bench/<name>.json`: `python -m workbench.bench [NAME …]`."""

from __future__ import annotations

import argparse
import json
import platform
from datetime import UTC, datetime

from workbench.bench import cold_import, decide
from workbench.stack.layout import project_root
from workbench.terminal import Terminal

BENCHES = {"decide": decide, "cold_import": cold_import}


def main() -> None:
    """Each measurement in turn, on an otherwise idle machine."""
    parser = argparse.ArgumentParser(prog="python -m workbench.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(BENCHES)}; all if not given")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHES))
    if unknown:
        parser.error(f"there is no bench {', '.join(unknown)}; there are: {', '.join(BENCHES)}")
    folder = project_root() / "build/bench"
    folder.mkdir(parents=True, exist_ok=True)
    terminal = Terminal(as_json=True)
    for name in options.names or BENCHES:
        bench = BENCHES[name]
        with terminal.progress(name, bench.steps()) as bar:
            figures = bench.measure(bar.step)
        about = {"bench": name, "python": platform.python_version(), "at": datetime.now(UTC).isoformat()}
        (folder / f"{name}.json").write_text(json.dumps(about | figures, indent=1) + "\n")
        terminal.result({"bench": name, **figures}, "")


if __name__ == "__main__":
    main()
