"""From a folder, a file or an archive to named bytes.

Files may be plain or `.gz`, loose or in a tar (any compression) or zip archive; nothing is ever written beside the
source. It knows nothing of what the bytes mean.
"""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_TAR = re.compile(r"\.(tar(\.\w+)?|tgz|txz|tbz2)$")
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)


class File(NamedTuple):
    """One data file: where it is (for messages), its full path without `.gz` (for names), its unpacked bytes."""

    place: str
    path: str
    data: bytes


def read_files(source: str | Path, wanted: Callable[[str], bool], expected: str) -> Iterator[File]:
    """The wanted files of a folder or archive in order of their path; a single file is always wanted.

    Parameters
    ----------
    source : folder, archive, or file.
    wanted : says of a path (with forward slashes, without `.gz`) whether that file belongs to the benchmark.
    expected : what a folder or archive should hold, for the message.

    Raises
    ------
    FileNotFoundError : the source is not there, or holds no wanted file.
    ValueError : an archive that cannot be unpacked.
    """
    source = Path(source).expanduser()
    if not source.exists():
        raise FileNotFoundError(f"{source}: no such file or folder. Give {expected}.")
    found = 0
    try:
        for place, path, read in _entries(source, wanted):
            found += 1
            data = read()
            yield File(place, path.removesuffix(".gz"), gzip.decompress(data) if path.endswith(".gz") else data)
    except _DAMAGED as error:
        raise ValueError(f"{source}: must be whole and unpackable; it is damaged ({error}). Get it again.") from error
    if not found:
        raise FileNotFoundError(f"{source}: must be {expected}; no such file is in it.")


def _entries(source: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """(place, path, function that reads it) of every file to read; of `x` and `x.gz`, the plain one only."""
    if source.is_file() and not (_TAR.search(source.name) or source.suffix == ".zip"):
        yield str(source), source.resolve().as_posix(), source.read_bytes
        return
    root = source.resolve().as_posix() + "/" if source.is_dir() else "/"

    def keep(name: str) -> bool:
        hidden = any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)
        return not hidden and wanted(root + name.removesuffix(".gz"))

    inside = _in_folder(source, keep) if source.is_dir() else _in_archive(source, keep)
    for name in sorted(inside):
        if not (name.endswith(".gz") and name.removesuffix(".gz") in inside):
            yield f"{source}/{name}", root + name, inside[name]


def _in_folder(source: Path, keep: Callable[[str], bool]) -> dict[str, Callable[[], bytes]]:
    names = {path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.is_file()}
    return {name: path.read_bytes for name, path in names.items() if keep(name)}


def _in_archive(source: Path, keep: Callable[[str], bool]) -> dict[str, Callable[[], bytes]]:
    """Members to keep, read in one pass: going back in a compressed archive would unpack it again."""
    contents = {}
    if source.suffix == ".zip":
        with zipfile.ZipFile(source) as archive:
            contents = {name: archive.read(name) for name in archive.namelist() if keep(name)}
    else:
        with tarfile.open(source, "r|*") as archive:
            for member in archive:
                name = PurePosixPath(member.name).as_posix()  # "./x" is x
                if member.isfile() and keep(name):
                    contents[name] = archive.extractfile(member).read()
    return {name: lambda data=data: data for name, data in contents.items()}
