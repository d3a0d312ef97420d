"""What may be logged of errors."""

from __future__ import annotations

from functions.aws.redaction import redacted, trace_of


def test_account_ids_are_masked_and_long_texts_cut() -> None:
    """Twelve digits standing alone are an account; thirteen are not."""
    text = redacted(ValueError(f"role of 123456789012, at 1234567890123 {'x' * 400}"))
    assert text.startswith("ValueError: role of <account>, at 1234567890123 x")
    assert len(text) == 300


def test_a_trace_names_kinds_and_lines_and_no_value() -> None:
    """With what caused it, unless that was suppressed."""

    def inner() -> None:
        raise KeyError("a payload")

    def outer(*, hide: bool) -> None:
        try:
            inner()
        except KeyError as error:
            raise RuntimeError("a token") from (None if hide else error)

    traces = []
    for hide in (False, True):
        try:
            outer(hide=hide)
        except RuntimeError as error:
            traces.append(trace_of(error))
    told, hidden = traces
    assert told.startswith("RuntimeError at test_redaction.py:")
    assert "; of KeyError at test_redaction.py:" in told
    assert "inner < test_redaction.py:" in told
    assert "KeyError" not in hidden
    assert "payload" not in told + hidden
    assert "token" not in told + hidden
