"""The batch lane's figures as they stand in the README (a few lines) and in docs/batch.md (all of them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

MODELS: Final = {"heavy": "moderation-heavy", "light": "moderation-light"}
_WAYS: Final = {
    "serverless": "serverless, while the caller waits",
    "batch": "each request a job, its result fetched once",
    "dataset": "a data set as one job",
}


def short(document: Mapping[str, Any]) -> Iterator[str]:
    """For the README: the ledger and the whole bill, a line a model and way."""
    assumed = document["assumed"]
    yield f"| 1,000 requests, {assumed['requests_per_job']:,} a job, {assumed['region']} | compute | whole bill |"
    yield "|---|--:|--:|"
    for model, seen in _models(document):
        for way, words in _WAYS.items():
            items = seen["whole"][way]
            yield f"| {model}: {words} | {_usd(items['compute'])} | {_usd(items['total'])} |"
    yield ""
    yield "What each holds, and from which service time on a job is cheaper: [docs/batch.md](docs/batch.md)."


def full(document: Mapping[str, Any]) -> Iterator[str]:
    """For docs/batch.md: what was measured, the ledger, the whole bill, where it turns, what was assumed."""
    models = list(_models(document))
    head = " | ".join(model for model, _ in models)
    rule = "|---|" + "--:|" * len(models)
    assumed = document["assumed"]

    def row(what: str, *values: str) -> str:
        return f"| {what} | {' | '.join(values)} |"

    yield f"Measured {str(document['at'])[:10]} on {document['cores']} cores, with Python {document['python']}."
    yield from ("", f"| measured | {head} |", rule)
    for what, group, key, form in _MEASURED:
        yield row(what, *(form.format(seen[group][key] if group else seen[key]) for _, seen in models))
    yield from ("", f"| compute for 1,000 requests, {assumed['requests_per_job']:,} a job | {head} |", rule)
    yield row("serverless, at", *(f"{seen['memory_mb_billed']} MB" for _, seen in models))
    yield row("serverless", *(_usd(seen["ledger"]["serverless_usd"]) for _, seen in models))
    yield row("batch, start-up included", *(_usd(seen["ledger"]["batch_usd"]) for _, seen in models))
    yield row("**batch to serverless**", *(f"**{_percent(seen['ledger']['ratio'])}**" for _, seen in models))
    sample = f"**… to the sample stack's serverless lane, {document['sample_mb']} MB**"
    yield row(sample, *(f"**{_percent(seen['ledger']['sample_ratio'])}**" for _, seen in models))
    for size in sorted({int(s) for _, seen in models for s in seen["ledger"]["ratio_by_memory_mb"]}):
        ratios = (seen["ledger"]["ratio_by_memory_mb"].get(str(size)) for _, seen in models)
        yield row(f"… to serverless of {size} MB", *(_percent(ratio) for ratio in ratios))
    for name, words in _IF.items():
        yield row(f"… if {words}", *(_percent(seen["if"][name]) for _, seen in models))
    for model, seen in models:
        yield from ("", f"| whole bill for 1,000 requests: {model} | serverless | a job each | data set |")
        yield "|---|--:|--:|--:|"
        ways = [seen["whole"][way] for way in _WAYS]
        for item in dict.fromkeys(name for way in ways for name in way):
            bold = "**" if item == "total" else ""
            yield row(f"{bold}{item}{bold}", *(f"{bold}{_usd(way[item])}{bold}" if item in way else "" for way in ways))
    yield from ("", f"| where it turns | {head} |", rule)
    what = "a job's message, record and objects cost as much as serverless of that size in"
    yield row(what, *(f"{seen['around_ms']:,.0f} ms" for _, seen in models))
    for what, path in _TURNS.items():
        for mark, share in (("at_35_percent", "35 %"), ("at_100_percent", "100 %")):
            unit = "" if path == "requests_per_job" else " ms"
            yield row(what.format(share), *(_turn(seen["turns"][path][mark], unit) for _, seen in models))
    yield from ("", "Assumed: " + ", ".join(f"`{name}={_plain(value)}`" for name, value in assumed.items()) + ".")


_MEASURED: Final = (
    ("a request by itself, as serverless bills it", "why", "request_ms", "{:.1f} ms"),
    ("a record among many in one request, same container", "why", "lines_ms", "{:.1f} ms"),
    ("core time of a request by itself, container alone", "why", "request_cpu_ms", "{:.1f} ms"),
    ("core time of a record of a MultiRecord job, all of it", "why", "multi_cpu_ms", "{:.1f} ms"),
    ("core time of a record of a SingleRecord job, all of it", "why", "single_cpu_ms", "{:.1f} ms"),
    ("MultiRecord to SingleRecord, one call at a time", "throughput", "multi_to_default", "{:.2f}×"),
    ("MultiRecord to SingleRecord, a call a core at a time", "throughput", "multi_to_single", "{:.2f}×"),
    ("… by core time", "throughput", "multi_to_single_cpu", "{:.2f}×"),
    ("how busy the jobs kept the cores", "throughput", "cores_busy", "{:.0%}"),
    ("a job's start-up: container and model", "service", "startup_s", "{:.1f} s"),
    ("memory of the serving process", "", "memory_mb", "{:,} MB"),
    ("records of the longest job that was run", "", "records_run", "{:,}"),
)
_IF: Final = {
    "provisioning_120_s": "120 s of provisioning are billed",
    "provisioning_300_s": "300 s of provisioning are billed",
    "vcpu_yield_0.65": "an instance's vCPUs, all busy, do the work of 0.65 cores each",
    "one_vcpu_at_1024_mb": "serverless brings a vCPU a GB",
}
_TURNS: Final = {
    "compute ≤ {}: requests a job": "requests_per_job",
    "compute ≤ {}: service time from": "service_ms_ledger",
    "whole bill ≤ {}: service time from": "service_ms_whole",
}


def _models(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((model, document[name]) for name, model in MODELS.items() if name in document)


def _usd(value: float) -> str:
    return f"$ {value:.5f}" if value < 0.1 else f"$ {value:.3f}"


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio * 100:.0f} %"


def _turn(value: float | None, unit: str) -> str:
    return "never" if value is None else f"{value:,.0f}{unit}"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
