"""What botocore raises, in the batch lane's words (see `service_errors`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.service_errors import failure


def code_of(error: ClientError) -> str:
    """The service's code."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def translated() -> Iterator[None]:
    """Raises `BusyError` or `UnavailableError` for what goes wrong inside."""
    try:
        yield
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        raise failure(code_of(error), error, status) from error
    except (BotoCoreError, OSError) as error:
        raise failure("", error) from error
