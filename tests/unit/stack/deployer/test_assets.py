"""Archives depend on their files' content and names, and on nothing else."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pulumi
import pytest

from workbench.stack.deployer.assets import payload
from workbench.stack.deployer.errors import ProgramError


def tree(folder: Path) -> Path:
    (folder / "pkg" / "__pycache__").mkdir(parents=True)
    (folder / "pkg" / "b.py").write_text("b")
    (folder / "pkg" / "a.py").write_text("a")
    (folder / "pkg" / "__pycache__" / "a.pyc").write_bytes(b"cache")
    return folder / "pkg"


def names(data: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(data)).namelist()


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    """Dates, modes, order and caches change nothing."""
    first, second = tree(tmp_path / "one"), tree(tmp_path / "two")
    os.utime(second / "a.py", (1, 1))
    (second / "b.py").chmod(0o755)
    (second / "__pycache__" / "b.pyc").write_bytes(b"more")

    packed = [payload(pulumi.FileArchive(str(folder))) for folder in (first, second)]

    assert packed[0] == packed[1]
    assert names(packed[0].read()) == ["a.py", "b.py"]


def test_an_asset_archive_sorts_and_nests(tmp_path: Path) -> None:
    """Folders, files and text come together under the names they were given, in order."""
    assets: dict[str, pulumi.Asset | pulumi.Archive] = {
        "z.json": pulumi.StringAsset("{}"),
        "lib": pulumi.FileArchive(str(tree(tmp_path))),
        "m/a.py": pulumi.FileAsset(str(tmp_path / "pkg" / "a.py")),
    }

    one = payload(pulumi.AssetArchive(assets))
    other = payload(pulumi.AssetArchive(dict(reversed(assets.items()))))

    assert names(one.read()) == ["lib/a.py", "lib/b.py", "m/a.py", "z.json"]
    assert one.sha256 == other.sha256


def test_a_zip_goes_as_it_is_and_nests_unpacked(tmp_path: Path) -> None:
    """A file archive that is a zip already is not packed twice; inside another archive its entries are taken."""
    file = tmp_path / "made.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.py", "x")

    assert payload(pulumi.FileArchive(str(file))).read() == file.read_bytes()
    assert names(payload(pulumi.AssetArchive({"in": pulumi.FileArchive(str(file))})).read()) == ["in/x.py"]


def test_a_changed_file_changes_the_digest(tmp_path: Path) -> None:
    """The digest is the content's."""
    file = tmp_path / "a"
    file.write_text("1")
    before = payload(pulumi.FileAsset(str(file))).sha256
    file.write_text("2")

    assert payload(pulumi.FileAsset(str(file))).sha256 != before


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The cause is the path, the way out is to build it."""
    with pytest.raises(ProgramError, match=r"gone\.tar\.gz does not exist: build it"):
        payload(pulumi.FileAsset(str(tmp_path / "gone.tar.gz")))


def test_entries_stay_inside() -> None:
    """No entry can climb out of the archive."""
    with pytest.raises(ProgramError, match="would leave the archive"):
        payload(pulumi.AssetArchive({"../evil": pulumi.StringAsset("x")}))


def test_remote_assets_are_refused() -> None:
    """Offline there is nowhere to fetch them from."""
    with pytest.raises(ProgramError, match="RemoteAsset cannot be deployed offline"):
        payload(pulumi.RemoteAsset("https://example.com/x"))
