"""Zip files with one JSON document and arrays, without compression and without pickles."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.documents import MAX_DOCUMENT_BYTES, Reader
from gammagmm.errors import SavedFileError

__all__ = ["Archive", "archive_bytes", "digest_of", "open_archive", "plain_array"]

Array = NDArray[Any]

DOCUMENT = "document.json"
DIGEST = "sha256"
"""The member with the SHA-256 of all others. It finds damage; it is no signature."""
MAX_ARCHIVE_BYTES = 4_000_000_000
"""Larger files are refused unread."""
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def plain_array(content: bytes) -> Array:
    """The array of the bytes of an .npy file; nothing is unpickled.

    A ValueError or another exception if they are not a plain array. The header is compared with
    the size before the array is made, because it could declare any size.
    """
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError("it is not a plain array of numbers")
    shape, _, kind = HEADERS[version](file)
    if kind.hasobject:
        raise ValueError("it contains Python objects, which are never unpickled")
    n_declared, n_bytes = math.prod(shape) * kind.itemsize, len(content) - file.tell()
    if min(shape, default=0) < 0 or bool in map(type, shape) or n_declared > n_bytes:
        raise ValueError(
            f"it declares the shape {shape}, which is {n_declared} bytes, but has {n_bytes} bytes"
        )
    file.seek(0)
    array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def archive_bytes(text: str, arrays: Mapping[str, Array]) -> bytes:
    """A zip file with the JSON `text` and each of `arrays` as an .npy file.

    The same content gives the same bytes. NumPy can open the file with ``numpy.load``. An array
    whose memory is in the order of columns is in that order after it was read, too: sums over the
    array depend on it in their last bits.
    """
    contents = {DOCUMENT: text.encode("utf-8")}
    for name, array in arrays.items():
        member = io.BytesIO()
        np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
        contents[f"{name}.npy"] = member.getvalue()
    contents[DIGEST] = digest_of(contents.items())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            # A ZipInfo has the year 1980, a plain name would have the present time.
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def digest_of(members: Iterable[tuple[str, bytes]]) -> bytes:
    """The SHA-256 of the names and contents of these members, in hexadecimal digits."""
    digest = sha256()
    for name, content in members:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest().encode("ascii")


@contextmanager
def open_archive(file: IO[bytes], reader: Reader) -> Iterator[Archive]:
    """The archive in `file`; the `reader` refuses what `archive_bytes` does not write."""
    with _refusing(reader):
        n_bytes = file.seek(0, io.SEEK_END)
        if n_bytes == 0:  # so has a device, which may never end
            reader.refuse("it is empty or not a file")
        if n_bytes > MAX_ARCHIVE_BYTES:
            reader.refuse(f"it is larger than {MAX_ARCHIVE_BYTES:,} bytes")
        opened = zipfile.ZipFile(file)
    with opened:
        if not _is_plain(opened, n_bytes):
            reader.refuse("its table of contents is damaged, or its members are compressed")
        members = {member.filename: member for member in opened.infolist()}
        _check_digest(opened, members, reader)
        yield Archive(opened, members, reader)


def _is_plain(opened: zipfile.ZipFile, n_bytes: int) -> bool:
    """Whether the members of an archive of `n_bytes` are different ones without compression."""
    members = opened.infolist()
    is_stored = all(
        member.compress_type == zipfile.ZIP_STORED and member.file_size == member.compress_size
        for member in members
    )
    # Without compression, the members take at most the memory of the file. The sum is compared,
    # because members could share their bytes.
    n_declared = sum(member.file_size for member in members)
    names = {member.filename for member in members}
    return is_stored and n_declared <= n_bytes and len(names) == len(members)


def _check_digest(
    opened: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], reader: Reader
) -> None:
    """Refuse members that do not have the digest in the file."""
    if DOCUMENT not in members:
        reader.refuse(f"its member {DOCUMENT} is missing")
    with _refusing(reader):
        contents = ((name, opened.read(name)) for name in members if name != DIGEST)
        is_right = DIGEST in members and digest_of(contents) == opened.read(DIGEST)
    if not is_right:
        reader.refuse("it was changed after it was saved")


@dataclass(frozen=True, eq=False)
class Archive:
    """An open archive."""

    file: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]
    reader: Reader
    read: set[str] = field(default_factory=set)  # names of the members that were read

    def document(self) -> Any:
        """The content of the JSON document."""
        content = self._content(DOCUMENT, MAX_DOCUMENT_BYTES)
        with _refusing(self.reader):
            text = content.decode("utf-8")
        return self.reader.parse(text)

    def array(self, name: str) -> Array:
        """The array with this `name`; each can be read once."""
        content = self._content(f"{name}.npy", MAX_ARCHIVE_BYTES)
        with _refusing(self.reader):
            return plain_array(content)

    def _content(self, name: str, most: int) -> bytes:
        """The bytes of a member, once its checksum has been found right."""
        member = self.members.get(name)
        if member is None or name in self.read or member.file_size > most:
            self.reader.refuse(f"its member {name} is missing, used twice or too large")
        self.read.add(name)
        with _refusing(self.reader):
            return self.file.read(member)


@contextmanager
def _refusing(reader: Reader) -> Iterator[None]:
    """Turn whatever the libraries raise on a damaged file into a `SavedFileError`."""
    try:
        yield
    except SavedFileError:
        raise
    except Exception as error:  # zipfile and NumPy's reader raise almost any
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        reader.refuse(f"it is damaged or not a saved file ({reason.rstrip('.')})")
