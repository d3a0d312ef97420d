"""Policies that are wrong in one way each, by hand: the text, the line of the mistake, words that its message has."""

from __future__ import annotations

from typing import NamedTuple

HEAD = "schema: inferlane/policy/v1\nversion: bad.1\n"
"""Two lines: what follows begins in line 3."""


class Bad(NamedTuple):
    """One bad document."""

    what: str
    content: bytes
    line: int
    words: tuple[str, ...]


def policy(what: str, rest: str, line: int, *words: str) -> Bad:
    """A document whose head is right and whose rest is not."""
    return Bad(what, (HEAD + rest).encode(), line, words)


def rule(what: str, text: str, *words: str) -> Bad:
    """A document whose one rule, in line 4, is wrong."""
    return policy(what, f"rules:\n  - {text}\n", 4, *words)


def when(what: str, text: str, *words: str) -> Bad:
    """A document whose one rule has a wrong condition, in line 5."""
    return policy(what, f"rules:\n  - id: a\n    when: {text}\n    order: [dedicated]\n", 5, *words)


BYTES = [
    Bad("two megabytes", HEAD.encode() + b"# " + b"x" * 2_000_000, 1, ("1 MiB",)),
    Bad("a NUL byte", HEAD.encode() + b"timezone: U\x00TC\n", 3, ("U+0000",)),
    Bad("an escape character", HEAD.encode() + b"timezone: \x1b[2J\n", 3, ("U+001B",)),
    Bad("Latin-1", HEAD.encode() + b"timezone: caf\xe9\n", 3, ("UTF-8", "0xe9")),
    Bad("UTF-16", HEAD.encode("utf-16"), 1, ("UTF-8",)),
    Bad("a gzip file", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 1, ("UTF-8",)),
    Bad("an overlong encoding", HEAD.encode() + b"a: \xc0\xaf\n", 3, ("UTF-8",)),
    Bad("an encoded surrogate", HEAD.encode() + b"a: \xed\xa0\x80\n", 3, ("UTF-8",)),
    Bad("nothing", b"", 1, ("mapping", "nothing")),
    Bad("only a comment", b"# to do\n", 1, ("mapping", "nothing")),
]

YAML = [
    Bad(
        "a billion laughs",
        b'a: &a ["lol", "lol"]\n' + b"".join(b"%c: &%c [*%c, *%c]\n" % (c + 1, c + 1, c, c) for c in range(97, 115)),
        1,
        ("anchor",),
    ),
    policy("an anchor", "defaults: &d {order: [dedicated]}\n", 3, "anchor"),
    policy("an alias", "rules: *later\n", 3, "alias"),
    policy("a recursive alias", "rules: &r [*r]\n", 3, "anchor"),
    policy("a python tag", "timezone: !!python/object/apply:os.system ['true']\n", 3, "tag", "python/object"),
    policy("a standard tag", "timezone: !!str UTC\n", 3, "tag"),
    policy("a tag of its own", "timezone: !zone UTC\n", 3, "tag", "!zone"),
    policy("a bare tag", "timezone: ! UTC\n", 3, "tag"),
    policy("a key twice", "timezone: UTC\ntimezone: UTC\n", 4, "timezone", "twice", "line 3"),
    policy("a key twice, deep", "defaults:\n  order: [batch]\n  order: [batch]\n", 5, "order", "twice"),
    policy("a key twice in braces", "defaults: {tier: a, tier: a}\n", 3, "tier", "twice"),
    policy("a number as a key", "tiers:\n  1: {max_priority: low}\n", 4, "text", "'1'"),
    policy("a truth as a key", "tiers: {true: {max_priority: low}}\n", 3, "text", "'true'"),
    policy("a list as a key", "? [a]\n: b\n", 3, "key", "text"),
    policy("a merge key", "defaults: {<<: {order: [batch]}}\n", 3, "<<", "unknown key"),
    policy("a tab as indentation", "defaults:\n\torder: [batch]\n", 4, "YAML"),
    policy("a missing bracket", "rules: [\n  {id: a, order: [batch]}\n", 5, "YAML", "]"),
    policy("a stray brace", "rules: {id: a]\n", 3, "YAML"),
    policy("an open quote", 'timezone: "UTC\n', 4, "YAML", "quote"),
    policy("a second colon", "timezone: a: b\n", 3, "YAML", "mapping values"),
    policy("an unfinished escape", 'timezone: "\\x4"\n', 3, "YAML"),
    policy("an escaped surrogate", 'timezone: "\\ud800"\n', 3, "YAML", "Unicode"),
    policy("bad indentation", "defaults:\n  tier: a\n tenant: b\n", 5, "YAML"),
    policy("a second document", "---\nschema: inferlane/policy/v1\n", 3, "second document"),
    Bad("another YAML", b"%YAML 2.0\n---\n" + HEAD.encode(), 1, ("incompatible",)),
    policy("brackets without end", "rules: " + "[" * 900_000 + "\n", 3, "nest"),
    policy("braces without end", "rules: " + "{a: " * 100_000 + "\n", 3, "nested more than"),
    policy("dashes without end", "rules: " + "- " * 200 + "\n", 3, "YAML"),
    policy("deep lists in lines", "rules:\n" + "".join(" " * i + "-\n" for i in range(150)), 103, "nested more than"),
    policy("a number of 5,000 digits", "rules: " + "9" * 5000 + "\n", 3, "5000 characters"),
    policy("a number beyond floats", "defaults: {deadline_ms: 1e400}\n", 3, "1e400", "too large"),
]

DOCUMENT = [
    Bad("a list", b"- a\n- b\n", 1, ("mapping", "list")),
    Bad("a text", b"hello\n", 1, ("mapping", "text")),
    Bad("no schema", b"version: a\n", 1, ("'schema'", "missing")),
    Bad("no version", b"schema: inferlane/policy/v1\n", 1, ("'version'", "missing")),
    Bad("another schema", b"version: a\nschema: inferlane/policy/v9\n", 2, ("inferlane/policy/v9",)),
    Bad("a version that is a number", b"schema: inferlane/policy/v1\nversion: 3\n", 2, ("version", "number")),
    Bad("an empty version", b"schema: inferlane/policy/v1\nversion: ''\n", 2, ("version", "empty")),
    policy("an unknown key", "rulez: []\n", 3, "rulez", "unknown key", "rules"),
    policy("an objective that is none", "objective: speed\n", 3, "objective", "speed"),
    policy("a zone that is none", "timezone: Mars/Base 1\n", 3, "timezone", "Mars/Base 1"),
    policy("a zone that is a number", "timezone: 8\n", 3, "timezone", "number"),
    policy("defaults as a list", "defaults: [dedicated]\n", 3, "defaults", "mapping"),
    policy("a default order that is empty", "defaults:\n  order: []\n", 4, "defaults.order"),
    policy(
        "a default lane that is none", "defaults:\n  order:\n    - dedicated\n    - gpu\n", 6, "'gpu'", "serverless"
    ),
    policy("a lane twice", "defaults: {order: [batch, batch]}\n", 3, "batch", "twice"),
    policy("a deadline of nothing", "defaults: {deadline_ms: 0}\n", 3, "deadline_ms", "at least 1"),
    policy("a tier that is none", "defaults: {tier: gold}\n", 3, "tier", "'gold'"),
    policy("an unknown caller's fate", "defaults: {unknown: maybe}\n", 3, "'maybe'", "refuse"),
    policy("a route without a model", "routes:\n  - {path: /chat}\n", 4, "routes[0]", "model"),
    policy("a route without a path", "routes:\n  - {model: chat}\n", 4, "routes[0]", "path"),
    policy("a relative path", "routes:\n  - {path: chat, model: chat}\n", 4, "routes[0].path", "chat"),
    policy("stars amid a path", "routes: [{path: /a/**/b, model: m}]\n", 3, "**"),
    policy("a priority that is none", "tiers:\n  vip: {max_priority: urgent}\n", 4, "tiers.vip", "'urgent'", "high"),
    policy("a tier without a cap", "tiers:\n  vip: {}\n", 4, "max_priority", "missing"),
    policy(
        "a tenant by two marks", "tenants:\n - {api_key: a, identity: b, tenant: t, tier: standard}\n", 4, "exactly one"
    ),
    policy("a tenant by no mark", "tenants:\n - {tenant: t, tier: standard}\n", 4, "exactly one", "api_key"),
    policy("a tenant of no tier", "tenants:\n - {api_key: a, tenant: t, tier: gold}\n", 4, "tenants[0].tier", "'gold'"),
    policy("an empty claim", "tenants:\n - {claim: {}, tenant: t, tier: standard}\n", 4, "claim"),
]

SIGNAL = """signals:
  hot:
    lane: {}
    metric: {}
    above: {}
    for: {}
    until_below: {}
    until_for: {}
"""

SIGNALS = [
    policy("a signal's lane", SIGNAL.format("gpu", "cpu_percent", 85, "5m", 70, "3m"), 5, "signals.hot.lane", "'gpu'"),
    policy("a signal's metric", SIGNAL.format("batch", "gpu_temp", 85, "5m", 70, "3m"), 6, "'gpu_temp'", "cpu_percent"),
    policy(
        "a bound as text", SIGNAL.format("batch", "errors", "hot", "5m", 70, "3m"), 7, "signals.hot.above", "number"
    ),
    policy("a time without a unit", SIGNAL.format("batch", "errors", 85, 5, 70, "3m"), 8, "signals.hot.for", "5m"),
    policy("a unit that is none", SIGNAL.format("batch", "errors", 85, "5min", 70, "3m"), 8, "signals.hot.for"),
    policy("no time at all", SIGNAL.format("batch", "errors", 85, "0s", 70, "3m"), 8, "for", "above zero"),
    policy("more than an hour", SIGNAL.format("batch", "errors", 85, "2h", 70, "3m"), 8, "for", "60m"),
    policy("an exit above the entry", SIGNAL.format("batch", "errors", 85, "5m", 90, "3m"), 9, "until_below", "90"),
    policy("a negative time", SIGNAL.format("batch", "errors", 85, "5m", 70, "-3m"), 10, "until_for"),
    policy(
        "a signal's typo",
        "signals:\n  hot: {lane: batch, metric: errors, abov: 5, for: 1m}\n",
        4,
        "abov",
        "unknown key",
    ),
]

RULES = [
    rule("a rule that is a text", "night", "rules[0]", "mapping"),
    rule("a rule without an id", "{order: [batch]}", "rules[0]", "'id'", "missing"),
    rule("a reserved id", "{id: default, order: [batch]}", "'default'", "reserved"),
    rule("a rule without an order", "{id: a}", "'order'", "missing"),
    rule("a rule's lane", "{id: a, order: [gpu]}", "rules[0].order[0]", "'gpu'", "batch"),
    rule("a rule's typo", "{id: a, wenn: {}, order: [batch]}", "wenn", "unknown key", "when"),
    rule("a rule's time", "{id: a, order: [batch], within: soon}", "within", "soon"),
    policy("rules as a mapping", "rules: {a: {order: [batch]}}\n", 3, "rules", "list"),
    policy(
        "an id twice", "rules:\n - {id: a, order: [batch], when: {path: /a}}\n - {id: a, order: [batch]}\n", 5, "'a'"
    ),
    when("an unknown condition", "{pth: /a}", "pth", "unknown key", "path"),
    when("a condition that is a text", "night", "when", "mapping"),
    when("an unknown signal", "{signal: cold}", "'cold'"),
    when("an unknown tier", "{tier: gold}", "'gold'"),
    when("an unknown priority", "{priority: urgent}", "'urgent'", "low"),
    when("an unknown bound", "{bytes: {over: 2MB}}", "over", "unknown key", "above"),
    when("no bound", "{bytes: {}}", "bytes", "above"),
    when("bounds without a value between", "{bytes: {above: 2MB, below: 1MB}}", "bytes", "no value"),
    when("an unknown unit of size", "{bytes: {above: 2 megs}}", "bytes.above"),
    when("a size below nothing", "{bytes: {above: -1}}", "bytes.above"),
    when("a load without a lane", "{load: {above: 0.8}}", "'lane'", "missing"),
    when("credentials", "{header: {Authorization: x}}", "Authorization"),
    when("nothing in any", "{any: []}", "any", "at least one"),
    when("all that is no list", "{all: {path: /a}}", "all", "list"),
    when("deep conditions", "{not: " * 20 + "{}" + "}" * 20, "nested"),
]

A, B = "{id: a, when: {path: /a}, order: [batch]}", "{id: b, order: [batch]}"
GUARD = "guard: {max_error_rate: 1%}"

BETWEEN = [
    policy("a rule behind one without a condition", f"rules:\n - {B}\n - {A}\n", 5, "rules[1]", "never reached", "'b'"),
    policy("one condition twice", f"rules:\n - {A}\n - {A.replace('id: a', 'id: c')}\n", 5, "when", "same condition"),
    policy("one path twice", "routes:\n - {path: /a, model: m}\n - {path: /a, model: n}\n", 5, "never reached"),
    policy(
        "a tenant that another covers",
        "tenants:\n"
        " - {api_key: 'vip-*', tenant: t, tier: standard}\n"
        " - {api_key: 'vip-a-*', tenant: u, tier: standard}\n",
        5,
        "tenants[1]",
        "tenants[0] covers it",
    ),
    policy(
        "an experiment with a rule's id",
        f"rules:\n - {B}\nexperiments:\n - {{id: b, share: 5%, order: [batch], {GUARD}}}\n",
        6,
        "experiments[0].id",
        "twice",
        "rules[0]",
    ),
    policy("an experiment without a guard", "experiments:\n - {id: e, share: 5%, order: [batch]}\n", 4, "'guard'"),
    policy("an empty guard", "experiments:\n - {id: e, share: 5%, order: [batch], guard: {}}\n", 4, "max_error_rate"),
    policy(
        "a share of more than all", f"experiments:\n - {{id: e, share: 101%, order: [batch], {GUARD}}}\n", 4, "100%"
    ),
    policy("a share below nothing", "rules:\n - {id: a, split: {share: -1%, order: [batch]}}\n", 4, "split.share"),
    policy("a share without its sign", "rules:\n - {id: a, split: {share: 0.1, order: [batch]}}\n", 4, "split.share"),
    policy(
        "a split beside an order",
        "rules:\n - {id: a, order: [batch], split: {share: 1%, order: [batch]}}\n",
        4,
        "order",
    ),
    rule("a hedge that is a word", "{id: a, order: [batch], hedge: maybe}", "hedge", "true or false"),
    when("an hour that is none", '{clock: {from: "25:00", to: "05:00"}}', "clock.from"),
    when("a day that is none", "{weekday: [sunday]}", "weekday", "'sunday'"),
    when("a breaker's state", "{breaker: {lane: batch, is: broken}}", "breaker.is", "'broken'"),
]

ALL = [*BYTES, *YAML, *DOCUMENT, *SIGNALS, *RULES, *BETWEEN]
