"""The policy as the router reads it: authored YAML in, the same document as compact JSON out.

Scalars follow YAML 1.2's core schema, so `22:00`, `yes` and `2026-12-01` stay text. Anchors, aliases, tags and
duplicate keys are refused with their line: a document means what it shows. What the keys mean is the router's
business.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pulumi
import yaml

SCHEMA = "inferlane/policy/v1"
MAX_BYTES = 2**20


class PolicyDocumentError(pulumi.RunError):
    """The document is not one the router could read; the message has file, line and cause."""


class _Loader(yaml.SafeLoader):
    """YAML 1.2 core scalars; no anchors, aliases or tags."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own protocol)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(problem="anchors and aliases are not allowed", problem_mark=event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(problem="tags are not allowed", problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} appears twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


def to_json(path: Path) -> str:
    """The document of a YAML file as JSON with sorted keys. Raises `PolicyDocumentError`."""
    content = path.read_bytes()
    if len(content) > MAX_BYTES:
        raise PolicyDocumentError(f"{path.name}: {len(content)} bytes, more than {MAX_BYTES}")
    try:
        document = yaml.load(content.decode(), _Loader)  # noqa: S506 (derives from SafeLoader)
    except UnicodeDecodeError as error:
        raise PolicyDocumentError(f"{path.name}: not UTF-8 at byte {error.start}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise PolicyDocumentError(f"{path.name}{line}: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        raise PolicyDocumentError(f"{path.name}: character {error.position}: {error.reason}") from error
    except RecursionError as error:
        raise PolicyDocumentError(f"{path.name}: nested too deeply") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise PolicyDocumentError(f"{path.name}:1: not a policy document: it must be a mapping with `schema: {SCHEMA}`")
    if not isinstance(document.get("version"), str):
        raise PolicyDocumentError(f"{path.name}:1: `version` is missing or not text")
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
