"""The clients' model: sums the numbers of each record and multiplies by the archive's factor. No dependency.

JSON in, `{"rows": [[1, 2], [3]]}`, gives `{"sums": [6, 6]}` with a factor of 2; CSV in gives a line a line. A number
that is none is the caller's fault.
"""

import json
from pathlib import Path


class CallerError(ValueError):
    """Carries the HTTP status the caller is to get."""

    status = 400


def model_fn(model_dir: str) -> int:
    return int(json.loads((Path(model_dir) / "factor.json").read_text())["factor"])


def input_fn(body: str | bytes, content_type: str | None) -> list[list[float]]:
    text = body.decode() if isinstance(body, bytes) else body
    try:
        if content_type == "text/csv":
            return [[float(cell) for cell in line.split(",")] for line in text.splitlines() if line]
        return [[float(cell) for cell in row] for row in json.loads(text)["rows"]]
    except ValueError as error:
        raise CallerError(str(error)) from error


def predict_fn(rows: list[list[float]], factor: int) -> list[float]:
    return [sum(row) * factor for row in rows]


def output_fn(sums: list[float], accept: str) -> str:
    if accept == "text/csv":
        return "\n".join(f"{each:g}" for each in sums)
    return json.dumps({"sums": sums})
