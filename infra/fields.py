"""What single values of a stack file may be: each type refuses with the value and what is allowed, in one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping in the stack file: unknown keys and other types are refused, nothing is changed afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def between(low: float, high: float, why: str = "") -> AfterValidator:
    """A number within both bounds."""

    def validate(value: float) -> float:
        if not low <= value <= high:
            raise ValueError(f"{value} is not between {low} and {high}{why}")
        return value

    return AfterValidator(validate)


def one_of(allowed: tuple[int, ...]) -> AfterValidator:
    """One of a few numbers."""

    def validate(value: int) -> int:
        if value not in allowed:
            raise ValueError(f"{value} is not one of {', '.join(map(str, allowed))}")
        return value

    return AfterValidator(validate)


def matching(pattern: str, what: str) -> Callable[[str], str]:
    """Text of this pattern; `what` says so in words."""
    compiled = re.compile(pattern)

    def validate(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise ValueError(f"{value!r} is not {what}")
        return value

    return validate


Name = Annotated[
    str,
    AfterValidator(
        matching(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", "a name: lower-case letters, digits and inner hyphens ([a-z0-9-])")
    ),
]
Region = Annotated[str, AfterValidator(matching(r"[a-z]{2}(-[a-z]+)+-\d", "an AWS region such as us-east-1"))]
ProjectPath = Annotated[
    str,
    AfterValidator(matching(r"(?!/)(?!.*\.\.)[\w./-]+", "a path inside the project, such as models/moderation-light")),
]

Issuer = Annotated[
    str,
    AfterValidator(
        matching(
            r"(https://[\w.-]+(:\d+)?|http://(127\.0\.0\.1|localhost)(:\d+)?)(/[\w./~-]*)?",
            "an issuer such as https://login.example.com/tenant (plain http on loopback only)",
        )
    ),
]
Topic = Annotated[
    str,
    AfterValidator(
        matching(
            r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]{1,256}",
            "the ARN of an SNS topic such as arn:aws:sns:us-east-1:123456789012:on-call",
        )
    ),
]
S3Prefix = Annotated[
    str,
    AfterValidator(
        matching(
            r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/([\w!.*'()=-]|\{tenant\})+)*/",
            "an S3 prefix such as s3://bucket/data/{tenant}/ (it ends with a slash)",
        )
    ),
]
KeyArn = Annotated[
    str,
    AfterValidator(
        matching(
            r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[\w-]+",
            "the ARN of a KMS key such as arn:aws:kms:us-east-1:123456789012:key/1234abcd-…",
        )
    ),
]
HttpsUrl = Annotated[
    str,
    AfterValidator(
        matching(
            r"https://[\w.-]+(:\d+)?(/[^\s?#]*)?(\?[^\s#]*)?", "an https URL such as https://hooks.example.com/jobs"
        )
    ),
]
ParameterName = Annotated[
    str,
    AfterValidator(
        matching(
            r"(/[\w.-]+)+", "the name of an SSM parameter such as /inferlane/webhooks/acme (it begins with a slash)"
        )
    ),
]
ContentType = Annotated[
    str,
    AfterValidator(matching(r"[a-z0-9.+-]+/([a-z0-9.+-]+|\*)", "a content type such as application/json or image/*")),
]
TimeOfDay = Annotated[
    str, AfterValidator(matching(r"([01]\d|2[0-3]):[0-5]\d", 'a time of day in quotes such as "01:00"'))
]
