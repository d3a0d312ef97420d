"""Model archives: URLs, and what is refused when they are unpacked."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from workbench.stack.sagemaker.model.artifacts import ArtifactError, check_paths, extract, parse_url


def pack(place: Path, *entries: tuple[str, bytes, str]) -> Path:
    """An archive of (name, tar type, content or link target) entries."""
    with tarfile.open(place, "w:gz") as tar:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = kind, 0o755 if name.endswith(".sh") else 0o600
            if kind == tarfile.REGTYPE:
                entry.size = len(content)
            else:
                entry.linkname = content
            tar.addfile(entry, io.BytesIO(content.encode()))
    return place


def test_extracts_files_and_folders(tmp_path: Path) -> None:
    """Files land under the target with their contents; only the executable bit of their mode is kept."""
    archive = pack(
        tmp_path / "m.tar.gz",
        ("./code", tarfile.DIRTYPE, ""),
        ("./code/inference.py", tarfile.REGTYPE, "x = 1"),
        ("deep/run.sh", tarfile.REGTYPE, "exit"),
    )
    extract(archive, tmp_path / "model")
    assert (tmp_path / "model/code/inference.py").read_text() == "x = 1"
    assert not os.access(tmp_path / "model/code/inference.py", os.X_OK)
    assert os.access(tmp_path / "model/deep/run.sh", os.X_OK)


@pytest.mark.fidelity(
    "models",
    "model.tar.gz holds no links and no paths that leave it",
    source="developer guide: deploy-model-troubleshoot",
)
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (("weights.bin", tarfile.SYMTYPE, "/etc/passwd"), "'weights.bin' is a link"),
        (("weights.bin", tarfile.LNKTYPE, "code/inference.py"), "is a link"),
        (("../out.py", tarfile.REGTYPE, ""), "leaves the archive's root"),
        (("/abs.py", tarfile.REGTYPE, ""), "leaves the archive's root"),
        (("pipe", tarfile.FIFOTYPE, ""), "neither a file nor a directory"),
    ],
)
def test_refused_entries(tmp_path: Path, entry: tuple[str, bytes, str], message: str) -> None:
    """Links, devices and paths out of the archive are refused before anything is written."""
    archive = pack(tmp_path / "m.tar.gz", ("code/inference.py", tarfile.REGTYPE, ""), entry)
    with pytest.raises(ArtifactError, match=message):
        extract(archive, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.fidelity(
    "models",
    "Compressed model data is a gzip-compressed tar",
    source="botocore: ContainerDefinition.ModelDataUrl",
)
@pytest.mark.parametrize("content", [b"", b"plain text", b"\x1f\x8b\x08\x00broken"])
def test_not_an_archive(tmp_path: Path, content: bytes) -> None:
    """Anything but a gzip-compressed tar is refused."""
    (tmp_path / "m.tar.gz").write_bytes(content)
    with pytest.raises(ArtifactError, match="not a gzip-compressed tar"):
        extract(tmp_path / "m.tar.gz", tmp_path / "model")


def test_truncated_archive(tmp_path: Path) -> None:
    """An archive cut short is refused."""
    whole = pack(tmp_path / "m.tar.gz", ("w.bin", tarfile.REGTYPE, os.urandom(50_000).hex())).read_bytes()
    (tmp_path / "m.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArtifactError, match="not a gzip-compressed tar"):
        extract(tmp_path / "m.tar.gz", tmp_path / "model")


@pytest.mark.fidelity(
    "models",
    "Model data is named by an S3 URI or an https S3 URL",
    source="botocore: ContainerDefinition.ModelDataUrl",
)
@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://bucket/models/a/model.tar.gz", ("bucket", "models/a/model.tar.gz")),
        ("https://s3.us-east-1.amazonaws.com/bucket/m.tar.gz", ("bucket", "m.tar.gz")),
        ("https://bucket.s3.eu-west-1.amazonaws.com/a/m.tar.gz", ("bucket", "a/m.tar.gz")),
    ],
)
def test_urls(url: str, place: tuple[str, str]) -> None:
    """S3 URLs and both https forms name bucket and key."""
    assert parse_url(url) == place


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "https://example.com/m.tar.gz"])
def test_bad_urls(url: str) -> None:
    """What names no S3 object is refused."""
    with pytest.raises(ArtifactError, match="is not the URL of an S3 object"):
        parse_url(url)


@pytest.mark.fidelity(
    "models",
    "Uncompressed data: keys without their prefix are paths; empty names, dots, names over 255 bytes and clashes of a "
    "file with a folder fail the deployment",
    source="botocore: S3ModelDataSource.CompressionType",
)
@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["weights/"], "is no path of a file"),
        (["a//b"], "is no path of a file"),
        (["../out"], "is no path of a file"),
        (["./a"], "is no path of a file"),
        (["n" * 256], "is no path of a file"),
        (["weights", "weights/part1"], "'weights' is both a file and a folder"),
    ],
)
def test_paths_of_uncompressed_data(paths: list[str], message: str) -> None:
    """What cannot be a file's path is refused; everything else is taken."""
    check_paths(["code/inference.py", "weights/part 1", "n" * 255])
    with pytest.raises(ArtifactError, match=message):
        check_paths(["code/inference.py", *paths])
