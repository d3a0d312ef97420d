"""An SNS topic as `Announcements`."""

from __future__ import annotations

from typing import Final, Protocol

from functions.aws.sdk_errors import translated

_LONGEST_SUBJECT: Final = 99
"""SNS takes fewer than 100 characters of printable ASCII (API reference, Publish)."""


class SnsClient(Protocol):
    """The part of botocore's client that is used."""

    def publish(self, *, TopicArn: str, Subject: str, Message: str) -> object:  # noqa: N803 - botocore's names
        """Send a message to whoever subscribes."""
        ...


class Topic:
    """One topic."""

    def __init__(self, client: SnsClient, arn: str) -> None:
        """`arn` is the topic's."""
        self._client = client
        self._arn = arn

    def announce(self, subject: str, text: str) -> None:
        """Publish a note (see `nightly_ports.Announcements`)."""
        plain = "".join(c if " " <= c <= "~" else "?" for c in subject)[:_LONGEST_SUBJECT]
        with translated():
            self._client.publish(TopicArn=self._arn, Subject=plain, Message=text)
