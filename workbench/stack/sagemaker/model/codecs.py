"""What stands in for `input_fn` and `output_fn` where a program has none: numpy arrays from and to JSON, CSV and NPY.

The official toolkit's decoder and encoder (aws/sagemaker-inference-toolkit, decoder.py, encoder.py). Any other type is
an `UnsupportedFormatError`, which its model server answers 500. One difference: an NPY body with pickled objects, which
could run code of its sender's, is refused. numpy is imported when first needed, as programs with functions of their own
may run without.
"""

from __future__ import annotations

import io
import json
from typing import Any


class UnsupportedFormatError(Exception):
    """A content type that the default functions do not know."""

    def __init__(self, content_type: str | None) -> None:
        super().__init__(
            f"Content type {content_type} is not supported by this framework.\n\n"
            "Please implement input_fn to to deserialize the request data or an output_fn to\n"
            "serialize the response. For more information, see the SageMaker Python SDK README."
        )


def decoded(body: Any, content_type: str | None) -> Any:
    """The default input_fn: an array."""
    import numpy as np

    match content_type:
        case "application/json":
            return np.array(json.loads(body))
        case "text/csv":
            return np.genfromtxt(io.StringIO(body), delimiter=",")
        case "application/x-npy":
            return np.load(io.BytesIO(body), allow_pickle=False)
    raise UnsupportedFormatError(content_type)


def encoded(prediction: Any, accept: str) -> tuple[str | bytes, str]:
    """The default output_fn: the array-like as text or bytes, and its type."""
    import numpy as np

    match accept:
        case "application/json":
            return json.dumps(prediction, default=_plain), accept
        case "text/csv":
            text = io.StringIO()
            np.savetxt(text, prediction, delimiter=",", fmt="%s")
            return text.getvalue(), accept
        case "application/x-npy":
            binary = io.BytesIO()
            np.save(binary, prediction)
            return binary.getvalue(), accept
    raise UnsupportedFormatError(accept)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
