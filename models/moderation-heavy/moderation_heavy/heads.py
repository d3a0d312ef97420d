"""The trained heads, kept with the source: two minutes of training that a build need not repeat.

Rule: the file tells what its heads were made of: the texts, the encoders, the code that embeds and the code that
trains. Heads of anything else are no heads: the build trains anew, and says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from building import dataset, head, workshop

from moderation_heavy import training
from moderation_heavy.training import Trained

FILE = training.HERE / "heads.json"
SCHEMA = "inferlane/moderation-heads/v1"


def made_of(texts: Mapping[str, dataset.Halves], files: Mapping[str, bytes]) -> str:
    """Return the hash of everything that the heads depend on; `files` are the encoders and their tokenizers."""
    told = [
        json.dumps([language, example.text, example.toxic])
        for language, halves in texts.items()
        for example in halves.train
    ]
    code = [Path(module.__file__ or "").read_bytes() for module in (training, head)]
    parts = [*code, training.CODE.read_bytes(), "\n".join(told).encode(), *(files[name] for name in sorted(files))]
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def kept(key: str) -> dict[str, Trained] | None:
    """Return the heads in the file; None if there is none, or it is of something else than `key`."""
    try:
        found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise workshop.BuildError(f"{FILE} is not JSON ({error}); restore it, or remove it to train anew") from None
    if found.get("schema") != SCHEMA or found.get("made_of") != key:
        return None
    return {language: _trained(stored) for language, stored in found["heads"].items()}


def keep(key: str, heads: Mapping[str, Trained]) -> None:
    """Write the file."""
    document = {
        "schema": SCHEMA,
        "made_of": key,
        "heads": {
            language: {"document": made.document, "chosen": asdict(made.head) | {"weights": []}}
            for language, made in heads.items()
        },
    }
    workshop.replace(FILE, (json.dumps(document) + "\n").encode())


def _trained(stored: Mapping[str, Any]) -> Trained:
    weights = [weight for block in stored["document"]["blocks"] for weight in block["weights"]]
    chosen = stored["chosen"] | {"weights": tuple(weights), "log_loss": tuple(map(tuple, stored["chosen"]["log_loss"]))}
    return Trained(stored["document"], head.Head(**chosen))
