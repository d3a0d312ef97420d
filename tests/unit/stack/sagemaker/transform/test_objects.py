"""Which objects a job reads, and where each one's output goes."""

from __future__ import annotations

import pytest

from workbench.stack.sagemaker.transform.objects import (
    Location,
    ManifestError,
    dealt,
    location,
    tasks_of_manifest,
    tasks_of_prefix,
)

OUT = location("s3://out/results")


@pytest.mark.fidelity(
    "batch transform",
    "An object's output is S3OutputPath, its key relative to the input prefix, and .out",
    source="API reference: TransformOutput (its own example is inconsistent; SDK local mode)",
)
@pytest.mark.parametrize(
    ("prefix", "key", "target"),
    [
        ("s3://in/data/", "data/a.csv", "results/a.csv.out"),
        ("s3://in/data/", "data/set1/a.csv", "results/set1/a.csv.out"),
        ("s3://in/data", "data/a.csv", "results/a.csv.out"),
        ("s3://in/data", "data/set1/a.csv", "results/set1/a.csv.out"),
        ("s3://in/data", "data-more/a.csv", "results/data-more/a.csv.out"),
        ("s3://in/data/part-", "data/part-1.csv", "results/part-1.csv.out"),
        ("s3://in/data/a.csv", "data/a.csv", "results/a.csv.out"),
        ("s3://in", "a.csv", "results/a.csv.out"),
        ("s3://in/", "data/a.csv", "results/data/a.csv.out"),
        ("s3://in/a.csv", "a.csv", "results/a.csv.out"),
    ],
)
def test_output_keys(prefix: str, key: str, target: str) -> None:
    """A key keeps its folders below the prefix and gets .out."""
    (task,) = tasks_of_prefix(location(prefix), [key], OUT)
    assert (task.source, task.target) == (Location("in", key), Location("out", target))


@pytest.mark.parametrize(
    ("output", "target"), [("s3://out", "a.out"), ("s3://out/", "a.out"), ("s3://out/x/", "x/a.out")]
)
def test_output_paths(output: str, target: str) -> None:
    """The output path may be a bucket, and may end with a slash."""
    (task,) = tasks_of_prefix(location("s3://in/"), ["a"], location(output))
    assert task.target == Location("out", target)


def test_folders_are_no_data() -> None:
    """Objects come in the order of keys, without the console's folder markers."""
    tasks = tasks_of_prefix(location("s3://in/d/"), ["d/", "d/b", "d/x/", "d/a"], OUT)
    assert [task.source.key for task in tasks] == ["d/a", "d/b"]


@pytest.mark.fidelity(
    "batch transform",
    "A manifest is a JSON array of one prefix object and keys relative to it",
    source="API reference: TransformS3DataSource",
)
def test_manifest() -> None:
    """A manifest's keys are put behind its prefix, and their outputs behind the output path."""
    text = b'[{"prefix": "s3://customer/some/prefix/"}, "relative/path/to/data-1", "data-2"]'
    tasks = tasks_of_manifest(text, OUT)
    assert [t.source.uri for t in tasks] == [
        "s3://customer/some/prefix/relative/path/to/data-1",
        "s3://customer/some/prefix/data-2",
    ]
    assert [t.target.key for t in tasks] == ["results/relative/path/to/data-1.out", "results/data-2.out"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"a,b", "the manifest is not JSON"),
        (b"{}", "must be a JSON array that begins with"),
        (b"[]", "must be a JSON array that begins with"),
        (b'["a"]', "must be a JSON array that begins with"),
        (b'[{"prefix": "s3://b/", "more": 1}, "a"]', "must be a JSON array that begins with"),
        (b'[{"prefix": "b/"}, "a"]', "must be an s3:// URI; got 'b/'"),
        (b'[{"prefix": 5}, "a"]', "must be an s3:// URI; got 5"),
        (b'[{"prefix": "s3://b/"}, 5]', "relative keys only; got 5"),
        (b'[{"prefix": "s3://b/"}, {"prefix": "s3://c/"}]', "relative keys only"),
        (b'[{"prefix": "s3://b/"}, ""]', "relative keys only; got ''"),
        (b'[{"prefix": "s3://b/"}, "a", "a"]', "lists 'a' more than once"),
    ],
)
def test_bad_manifests(text: bytes, why: str) -> None:
    """What is no manifest says what it lacks."""
    with pytest.raises(ManifestError) as caught:
        tasks_of_manifest(text, OUT)
    assert why in str(caught.value)


@pytest.mark.fidelity(
    "batch transform",
    "Objects are mapped to instances by key; one object keeps one instance busy",
    source="developer guide: batch-transform",
)
def test_dealing() -> None:
    """Objects go to instances in turn; one object leaves the others idle."""
    assert dealt("abcde", 2) == [["a", "c", "e"], ["b", "d"]]
    assert dealt("a", 3) == [["a"], [], []]
