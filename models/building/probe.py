"""Serves texts from an unpacked archive and times it: `python probe.py FOLDER [--lines] < texts.jsonl`.

It is a process of its own, so that import time, load time and peak memory are those of a worker that does nothing
else. It knows the model only through the four contract functions. It prints one JSON object a line: `{"verdict", "ms"}`
for each text, in order, and last `{"import_s", "load_s", "first_ms", "peak_rss_mb", "provider"}`. The first text is
served once more before them all, as `first_ms`: it pays for what is set up lazily.

With `--lines` all texts are one JSON Lines request, as a batch transform's MultiRecord sends them, and one object is
printed: `{"texts", "seconds", "peak_rss_mb"}`.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any


def load(path: Path) -> ModuleType:
    """Import an inference.py from its path; with it go the folder's other modules."""
    spec = importlib.util.spec_from_file_location("served_inference", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    sys.path.insert(0, str(path.parent))  # as the model server does: what lies beside the program can be imported
    spec.loader.exec_module(module)
    return module


def serve(inference: ModuleType, model: Any, text: str) -> tuple[dict[str, Any], float]:
    """Return the answer to one request and the milliseconds it took."""
    body = json.dumps({"text": text}).encode()
    started = time.perf_counter()
    request = inference.input_fn(body, "application/json")
    answer, _ = inference.output_fn(inference.predict_fn(request, model), "application/json")
    elapsed_ms = (time.perf_counter() - started) * 1000
    return json.loads(answer), elapsed_ms


def serve_lines(inference: ModuleType, model: Any, texts: list[str]) -> float:
    """Return the seconds that one request for all texts took."""
    body = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    started = time.perf_counter()
    request = inference.input_fn(body, "application/jsonlines")
    inference.output_fn(inference.predict_fn(request, model), "application/jsonlines")
    return time.perf_counter() - started


def peak_rss_mb() -> float:
    """Return this process's peak resident memory in MB (10⁶ bytes)."""
    status = Path("/proc/self/status")
    if status.is_file():  # on Linux ru_maxrss starts at the parent's peak, which was a training run
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def main() -> None:
    """Load the model of argv[1] and serve standard input."""
    folder = Path(sys.argv[1])
    texts = [json.loads(line) for line in sys.stdin]
    begun = time.perf_counter()
    inference = load(folder / "code" / "inference.py")
    imported = time.perf_counter()
    model = inference.model_fn(str(folder))
    loaded = time.perf_counter()
    _, first_ms = serve(inference, model, texts[0])
    if "--lines" in sys.argv:
        seconds = serve_lines(inference, model, texts)
        print(json.dumps({"texts": len(texts), "seconds": seconds, "peak_rss_mb": peak_rss_mb()}))
        return
    for text in texts:
        verdict, elapsed_ms = serve(inference, model, text)
        print(json.dumps({"verdict": verdict, "ms": elapsed_ms}), flush=True)
    facts = {"import_s": imported - begun, "load_s": loaded - imported, "first_ms": first_ms}
    print(json.dumps({**facts, "peak_rss_mb": peak_rss_mb(), "provider": model.provider}))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)  # the build was interrupted, and says so itself
