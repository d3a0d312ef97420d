"""What the nightly recheck's functions read from their environment, and the names of what they count.

As in `batch_settings`, for `prepare` and `report`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from functions.batch_settings import topology_file, written
from functions.settings import PREFIX, SettingsError, read_text

MOST_EXAMPLES: Final = 100
RECHECK_VERDICTS: Final = "RecheckVerdicts"
"""Verdicts of a day that were compared."""
RECHECK_UNCHECKED: Final = "RecheckUnchecked"
"""Share of the day's captured requests that could not be rechecked, 0 to 1."""
RECHECK_AGREEMENT: Final = "RecheckAgreement"
"""Share of the day's verdicts that the heavy model shares, 0 to 1."""
RECHECK_KAPPA: Final = "RecheckKappa"
"""Agreement beyond chance, -1 to 1."""
RECHECK_MISSED: Final = "RecheckMissed"
"""Share of what the heavy model flags that the light one let pass, 0 to 1."""
RECHECK_FALSE_ALARMS: Final = "RecheckFalseAlarms"
"""Share of what the light model flags that the heavy one lets pass, 0 to 1."""
RECHECK_DRIFT: Final = "RecheckDrift"
"""Population stability index of the light model's scores against the days before."""
RECHECK_COST: Final = "RecheckCostUsd"
"""The transform job's compute. All by {stack, model}, one point a report, stamped with its job's end."""


@dataclass(frozen=True, slots=True)
class NightlySettings:
    """The settings of `prepare` and `report`."""

    stack: str
    region: str
    topology_file: Path
    data_bucket: str
    light_model: str
    """Whose captured verdicts are rechecked, and by whom: names in the topology."""
    heavy_model: str
    time_zone: str
    """IANA name: which day a request belongs to."""
    data_key: str | None = None
    topic: str | None = None
    """ARN of the SNS topic that is told of each report."""
    capture_prefix: str = "capture/"
    nightly_prefix: str = "nightly/"
    passing: str = "ok"
    """The label that lets a text pass; all others flag it."""
    examples: int = 10
    """How many misses, and how many false alarms, a report quotes; 0: it quotes nothing that was captured."""


def nightly_environment(
    function: Literal["prepare", "report"],
    *,
    stack: str,
    data_bucket: str,
    light_model: str,
    heavy_model: str,
    time_zone: str,
    data_key: str | None = None,
    topic: str | None = None,
    capture_prefix: str = "capture/",
    nightly_prefix: str = "nightly/",
    passing: str = "ok",
    examples: int = 10,
    log_level: str = "INFO",
) -> dict[str, str]:
    """The environment the Pulumi program gives `prepare` and `report`; `read_nightly` reads it back."""
    return written(
        function,
        log_level,
        STACK=stack,
        DATA_BUCKET=data_bucket,
        DATA_KEY=data_key,
        LIGHT_MODEL=light_model,
        HEAVY_MODEL=heavy_model,
        TIME_ZONE=time_zone,
        TOPIC=topic,
        CAPTURE_PREFIX=capture_prefix,
        NIGHTLY_PREFIX=nightly_prefix,
        PASSING=passing,
        EXAMPLES=f"{examples:d}",
    )


def read_nightly(environ: Mapping[str, str] | None = None) -> NightlySettings:
    """Read the settings of `prepare` and `report`."""
    env = os.environ if environ is None else environ
    return NightlySettings(
        stack=read_text(env, f"{PREFIX}STACK"),
        region=read_text(env, "AWS_REGION"),
        topology_file=topology_file(env),
        data_bucket=read_text(env, f"{PREFIX}DATA_BUCKET"),
        light_model=read_text(env, f"{PREFIX}LIGHT_MODEL"),
        heavy_model=read_text(env, f"{PREFIX}HEAVY_MODEL"),
        time_zone=read_text(env, f"{PREFIX}TIME_ZONE"),
        data_key=env.get(f"{PREFIX}DATA_KEY") or None,
        topic=env.get(f"{PREFIX}TOPIC") or None,
        capture_prefix=read_text(env, f"{PREFIX}CAPTURE_PREFIX"),
        nightly_prefix=read_text(env, f"{PREFIX}NIGHTLY_PREFIX"),
        passing=env.get(f"{PREFIX}PASSING") or "ok",
        examples=_examples(env),
    )


def _examples(env: Mapping[str, str]) -> int:
    text = env.get(f"{PREFIX}EXAMPLES", "10")
    if not text.isdecimal() or int(text) > MOST_EXAMPLES:
        raise SettingsError(
            f"environment variable {PREFIX}EXAMPLES is not a whole number of at most {MOST_EXAMPLES}: {text!r}"
        )
    return int(text)
