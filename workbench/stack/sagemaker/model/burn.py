"""A CPU burner, the `stress` fault: keeps a share of one core busy until its parent ends or stops it.

`python -m workbench.stack.sagemaker.model.burn --share 0.5` works in slices of 20 ms: busy for the share, then asleep.
"""

from __future__ import annotations

import argparse
import time

from workbench.stack.sagemaker.model.child import end_with_parent

SLICE_S = 0.02


def main() -> None:
    """Burn."""
    parser = argparse.ArgumentParser(prog="python -m workbench.stack.sagemaker.model.burn", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of one core, 0 to 1 (default 1)")
    share = min(max(parser.parse_args().share, 0.0), 1.0)
    end_with_parent()
    while True:
        start = time.perf_counter()
        while time.perf_counter() - start < SLICE_S * share:
            pass
        time.sleep(SLICE_S * (1 - share))


if __name__ == "__main__":
    main()
