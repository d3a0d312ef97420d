"""What a deploy reports while it runs, as JSON lines or for the eye.

Events, one JSON object a line: `resource` (action, type, name, id, seconds, changed), `notice` (message), and last
either `result` (outputs, counts, seconds) or `error` (message). Secret outputs read `[secret]` unless asked for.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Protocol, TextIO

from workbench.stack.deployer.diff import Action

_SIGNS: Mapping[str, str] = {"create": "+", "update": "~", "replace": "±", "delete": "-", "same": " "}
_QUIET_ACTIONS = {"same"}


class Progress(Protocol):
    """Where the engine reports to. Threads call it."""

    def resource(
        self, action: Action, type_: str, name: str, id_: str, seconds: float, changed: Iterable[str] = ()
    ) -> None: ...

    def notice(self, message: str) -> None: ...

    def result(self, outputs: Mapping[str, object], counts: Mapping[str, int], seconds: float) -> None: ...

    def error(self, message: str) -> None: ...


class JsonProgress:
    """JSON lines."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def resource(
        self, action: Action, type_: str, name: str, id_: str, seconds: float, changed: Iterable[str] = ()
    ) -> None:
        event: dict[str, object] = {"event": "resource", "action": action, "type": type_, "name": name, "id": id_}
        event |= {"seconds": round(seconds, 3)}
        if action in ("update", "replace"):
            event["changed"] = sorted(changed)
        self._emit(event)

    def notice(self, message: str) -> None:
        self._emit({"event": "notice", "message": message})

    def result(self, outputs: Mapping[str, object], counts: Mapping[str, int], seconds: float) -> None:
        self._emit({"event": "result", "outputs": outputs, "counts": counts, "seconds": round(seconds, 3)})

    def error(self, message: str) -> None:
        self._emit({"event": "error", "message": message})

    def _emit(self, event: Mapping[str, object]) -> None:
        with self._lock:
            print(json.dumps(event), file=self._out, flush=True)


class TextProgress:
    """Lines for the eye: what stays the same is only counted."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._lock = threading.Lock()

    def resource(
        self, action: Action, type_: str, name: str, id_: str, seconds: float, changed: Iterable[str] = ()
    ) -> None:
        if action in _QUIET_ACTIONS:
            return
        id_ = f" ({id_})" if id_ and action == "create" else ""
        detail = f"  [{', '.join(sorted(changed))}]" if action in ("update", "replace") else ""
        self._print(
            f"{_SIGNS[action]} {action:<8}{type_.split(':')[-1]} {name}{id_}{detail}  {seconds:.1f} s", self._out
        )

    def notice(self, message: str) -> None:
        self._print(f"! {message}", self._out)

    def result(self, outputs: Mapping[str, object], counts: Mapping[str, int], seconds: float) -> None:
        done = ", ".join(f"{count} {action}" for action, count in counts.items() if count) or "nothing to do"
        self._print(f"{done} in {seconds:.1f} s", self._out)
        for name, value in sorted(outputs.items()):
            self._print(f"  {name}: {value if isinstance(value, str) else json.dumps(value)}", self._out)

    def error(self, message: str) -> None:
        self._print(f"error: {message}", self._err)

    def _print(self, line: str, out: TextIO) -> None:
        with self._lock:
            print(line, file=out, flush=True)
