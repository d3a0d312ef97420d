"""Jobs: names, fingerprints, ends and places."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from functions.core.job import (
    End,
    Job,
    JobKey,
    JobState,
    Work,
    fingerprint,
    keyed_id,
    result_key,
)

KEY = JobKey("acme", "0" * 32)


def digest(*parts: bytes) -> str:
    """SHA-256 over the parts, each after its length in eight bytes."""
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


def job(end: End | None = None) -> Job:
    """Accepted at 100, due at 200."""
    return Job(KEY, "moderation", "f", 100.0, 200.0, end=end)


def test_a_key_gives_a_tenant_the_same_job_again() -> None:
    """32 hex digits; another tenant's same key is another job, and no two parts run into each other."""
    assert keyed_id("acme", "k") == digest(b"acme", b"k")[:32]
    assert len({keyed_id("acme", "k"), keyed_id("acm", "ek"), keyed_id("acme", "l"), keyed_id("b", "k")}) == 4


def test_a_fingerprint_is_of_all_that_is_asked() -> None:
    """Model, content type, accept and body; an absent type is as an empty one."""
    assert fingerprint("m", "a/b", "c/d", b"x") == digest(b"m", b"a/b", b"c/d", b"x")
    assert fingerprint("m", None, None, b"") == digest(b"m", b"", b"", b"")
    others = [
        ("n", "a/b", "c/d", b"x"),
        ("m", "a/c", "c/d", b"x"),
        ("m", "a/b", "c/e", b"x"),
        ("m", "a/b", "c/d", b"y"),
    ]
    assert fingerprint("m", "a/b", "c/d", b"x") not in {fingerprint(*other) for other in others}


def test_a_job_is_accepted_until_it_has_ended() -> None:
    """Then it is what its end says."""
    assert job().state is JobState.ACCEPTED
    assert job(End(JobState.CANCELLED, 150.0)).state is JobState.CANCELLED


def test_late_is_done_after_the_deadline() -> None:
    """At the deadline is in time; nothing else than done is late."""
    assert not job().late
    assert not job(End(JobState.DONE, 200.0)).late
    assert job(End(JobState.DONE, 200.1)).late
    assert not job(End(JobState.EXPIRED, 300.0)).late


def test_work_is_of_the_record_it_was_sent_for() -> None:
    """By its fingerprint; without one it can be of no other."""
    work = Work(KEY, "moderation", None, None, 100.0, 200.0, ())
    assert work.is_of(job())
    assert replace(work, fingerprint="f").is_of(job())
    assert not replace(work, fingerprint="g").is_of(job())


def test_objects_of_a_job_lie_under_its_tenants_hash() -> None:
    """The tenant's name is not in a key, and each answerer writes to a place of its own."""
    assert result_key(KEY, "run-1") == f"batch/results/{digest(b'acme')[:16]}/{KEY.id}/run-1"
