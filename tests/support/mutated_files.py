"""Hostile files, from a seed and a number: mutated valid files, and files of small grammars."""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.support.good_files import KINDS, good_files, npy
from tests.support.workbooks import ods_parts, xlsx_parts, zipped

Generator = np.random.Generator
MAX_BYTES = 200_000
"""Longer files are cut: the faults to find are those where a small file has a large effect."""

NUMBERS = ["0", "-1", "1e308", "-1e999", "nan", "1_0", "0x1f", "9" * 400, "٣", "-0.0", "1e-320"]
CONTROLS = ["\0", "\x1b[2J", "\r", "\n", "\ufeff", "\u2028", "\u202e", "\x85", "\x0b", "\x1c", "é"]
JSON_WORDS = ["null", "true", "NaN", "Infinity", "[", "]", "{", "}", '"', ":", ",", '"\\ud800"']
ARFF_WORDS = ["@attribute", "@data", "@relation", "{", "}", "'", '"', "?", "%", "\\", "string"]
NPY_WORDS = ["'descr'", "'<f8'", "'|O'", "'<U0'", "(", ")", "L", "True", "[", ",", "{", "0,"]
POSTERIOR_WORDS = ["prob_zero", "weights", "betas", "low", "high", "n_left", "first", "version"]
SHEET_WORDS = ["<", ">", "/", '"', "&amp;", "&#49;", "<!--", "-->", "<![CDATA[", "]]>", " r=", "</"]
WRITTEN_WORDS = [
    "€",
    "%",
    "1.185,43",
    "1 234",
    "1'000",
    "(5)",
    "5-",
    "True",
    "-",
    "#NV",
    "sep=;",
    "|",
]
TEXT_WORDS = {
    "csv": [",", ";", "\t", '"', '""', "\r\n", "=1+1", "<script>", "[red]", " ", "?", "NA"],
    "arff": [*ARFF_WORDS, "real", "integer", "date", "relational", ",", "yes", "no", "outlier"],
    "jsonl": [*JSON_WORDS, '"a"', '"b":', '{"c": 1}'],
    "txt": [*WRITTEN_WORDS, ",", ";", "\t", '"', "\r\n", "1,234", "CHF", "\u202f", "."],
    "zip": [*WRITTEN_WORDS, ",", ";", "t.csv", "PK\x01\x02", "PK\x05\x06"],
    "json": [*JSON_WORDS, *WRITTEN_WORDS, '"a"', '"b":', '{"c": 1}', "[]", "{}"],
    "xlsx": [*SHEET_WORDS, 'r="XFD1048576"', "<row>", "<c>", "<v>9</v>", 't="s"', 't="d"', 's="1"'],
    "ods": [
        *(*SHEET_WORDS, 'table:number-columns-repeated="999999999"', "<table:table-row>"),
        *('table:number-rows-repeated="9999999"', "office:value=", "<text:p>", "</table:table>"),
    ],
    "sqlite": ["CREATE TABLE", "sqlite_", "t", "\x0d", "\x05", "AS (", "VIRTUAL"],
    "npy": NPY_WORDS,
    "npz": [*NPY_WORDS, "X.npy", "y.npy", "PK\x01\x02", "PK\x05\x06"],
    "posterior": [*JSON_WORDS, *POSTERIOR_WORDS],
    "sheet": [",", '"', "row", "anomaly", "id", "1e99", "inf", "yes", "0", "\r\n", "'="],
}
JSON_VALUES = [0, 1, 0.5, 1e-300, 1e300, 5e-324, 0.999, -1, 2**70, None, True, "x", [], {}]
PLACES = range(1000)  # of a list, modulo its length
MAGICS = [b"PAR1", b"ARROW1\0\0", b"\x93NUMPY", b"PK\x03\x04", b"\x1f\x8b\x08", b"\x89HDF\r\n"]
SIZES = [0, 1, 7, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1]


def mutated_file(kind: str, seed: int, number: int) -> bytes:
    """The hostile file of a kind with this seed and number."""
    return make_hostile(kind, np.random.default_rng([seed, list(KINDS).index(kind), number]))


def make_hostile(kind: str, rng: Generator) -> bytes:
    """A hostile file of a kind: a mutated valid file, or one from a grammar."""
    if kind in GRAMMARS and rng.random() < 0.3:
        return GRAMMARS[kind](rng)[:MAX_BYTES]
    content = _pick(good_files(kind), rng)
    if kind.endswith(".gz") and rng.random() < 0.7:
        return gzip.compress(mutate(gzip.decompress(content), kind, rng), 1, mtime=0)
    if content.startswith(b"PK") and rng.random() < 0.7:
        return _change_member(content, kind, rng)
    return mutate(content, kind, rng)


def mutate(content: bytes, kind: str, rng: Generator) -> bytes:
    """`content` after one to six changes; one change is as likely as several."""
    for _ in range(min(int(rng.geometric(0.5)), 6)):
        content = _pick(CHANGES, rng)(content, kind, rng)[:MAX_BYTES]
    return content


def flip_bits(content: bytes, kind: str, rng: Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(min(len(changed), 1 + int(rng.integers(8)))):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(content: bytes, kind: str, rng: Generator) -> bytes:
    """`content` without its end, its start or a piece in between."""
    start, end = _span(content, rng)
    parts = [content[:start], content[end:], content[:start] + content[end:]]
    return _pick(parts, rng)


def repeat(content: bytes, kind: str, rng: Generator) -> bytes:
    start, end = _span(content, rng)
    times = int(2 ** rng.integers(1, 12))
    return content[:start] + content[start:end] * times + content[end:]


def splice(content: bytes, kind: str, rng: Generator) -> bytes:
    """`content` with a piece of another valid file, usually of the same kind."""
    other_kind = kind if rng.random() < 0.7 else _pick(list(KINDS), rng)
    other = _pick(good_files(other_kind), rng)
    start, end = _span(other, rng)
    place, until = _span(content, rng)
    return content[:place] + other[start:end] + content[until:]


def insert_word(content: bytes, kind: str, rng: Generator) -> bytes:
    """`content` with a word of the format, an odd number or a control character."""
    base = kind.removesuffix(".gz")
    words = TEXT_WORDS.get("csv" if base == "tsv" else base, []) + NUMBERS + CONTROLS
    word = _pick(MAGICS, rng) if rng.random() < 0.05 else _pick(words, rng).encode()
    place = int(rng.integers(len(content) + 1))
    until = place + int(rng.integers(2)) * len(word)
    return content[:place] + word + content[until:]


def change_number(content: bytes, kind: str, rng: Generator) -> bytes:
    """`content` with one written number replaced by another."""
    found = list(re.finditer(rb"-?\d[\d.e+-]*", content))
    if not found:
        return flip_bits(content, kind, rng)
    match = _pick(found, rng)
    size = str(_pick(SIZES, rng))
    number = _pick([*NUMBERS, size, size, size], rng).encode()
    return content[: match.start()] + number + content[match.end() :]


def change_size(content: bytes, kind: str, rng: Generator) -> bytes:
    """`content` with two, four or eight bytes replaced by another binary number."""
    order, (form, width) = _pick("<>", rng), _pick([("H", 2), ("I", 4), ("Q", 8)], rng)
    size = _pick(SIZES, rng) % 256**width
    place = int(rng.integers(max(len(content) - width, 0) + 1))
    if rng.random() < 0.5:
        place -= place % 4
    return content[:place] + struct.pack(order + form, size) + content[place + width :]


def nest(content: bytes, kind: str, rng: Generator) -> bytes:
    """`content` and many zeros, compressed: a small decompression bomb."""
    zeros = content + bytes(int(10 ** rng.integers(1, 7)))
    return gzip.compress(zeros, 9, mtime=0) if rng.random() < 0.5 else zlib.compress(zeros, 9)


CHANGES: list[Callable[[bytes, str, Generator], bytes]] = [
    *(flip_bits, flip_bits, cut, repeat, splice, insert_word, insert_word),
    *(change_number, change_number, change_size, change_size, nest),
]


def _change_member(content: bytes, kind: str, rng: Generator) -> bytes:
    """The archive with one member changed; its sizes and checksums stay right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = _pick(list(members), rng)
    members[name] = mutate(members[name], "npy" if kind.endswith("npz") else kind, rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", _pick([0, 8, 8, 12, 14], rng)) as archive:
        for name, part in members.items():
            archive.writestr(name, part)
    return file.getvalue()


def csv_text(rng: Generator) -> bytes:
    delimiter, n_columns = _pick([",", ";", "\t", "|"], rng), int(rng.integers(1, 6))
    cells = ["1", "2.5", "", "x", '"q"', '"a,b"', '"', "?", *NUMBERS, *CONTROLS, *TEXT_WORDS["csv"]]
    lines = []
    for _ in range(int(rng.integers(8))):
        width = n_columns if rng.random() < 0.9 else int(rng.integers(1, 6))
        lines.append(delimiter.join(_pick(cells, rng) for _ in range(width)))
    return _pick(["\n", "\r\n", "\r"], rng).join(lines).encode()


def arff_text(rng: Generator) -> bytes:
    kinds = ["real", "NUMERIC", "integer", "string", "{a,'b c'}", "date", "{", ""]
    names = ["a", "'the size'", '"n"', "outlier", "id", "it\\'s", "'", "é", "a"]
    cells = ["1", "?", "a", "'b c'", "'it\\'s, so'", "yes", "no", "'", '"', "\\", *NUMBERS]
    n = int(rng.integers(5))
    lines = [f"@attribute {_pick(names, rng)} {_pick(kinds, rng)}" for _ in range(n)]
    lines.append(_pick(["@data", "@DATA", "%", ""], rng))
    for _ in range(int(rng.integers(5))):
        lines.append(_pick([",", ", "], rng).join(_pick(cells, rng) for _ in range(n)))
    return "\n".join(lines).encode()


def json_text(rng: Generator) -> bytes:
    return "\n".join(_json_value(rng, 3) for _ in range(int(rng.integers(1, 5)))).encode()


def _json_value(rng: Generator, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        return _pick(["1", "-2.5e3", "true", "null", '"x"', "NaN", '"\\ud800"', *NUMBERS], rng)
    items = [_json_value(rng, depth - 1) for _ in range(int(rng.integers(4)))]
    if rng.random() < 0.2:
        return f"[{','.join(items)}]"
    names = ['"a"', '"b"', '"schema"', '""', '"=1"', '"\\u0000"']
    return "{" + ",".join(f"{_pick(names, rng)}:{item}" for item in items) + "}"


def json_document(kind: str, rng: Generator) -> bytes:
    """A saved document with a few other values: still JSON, and sometimes still valid."""
    data = json.loads(_pick([file for file in good_files(kind) if file.startswith(b"{")], rng))
    for _ in range(int(rng.integers(4))):
        place: Any = data
        while isinstance(place, dict | list) and place:
            inside, key = place, _pick(list(place) if isinstance(place, dict) else PLACES, rng)
            key = key % len(place) if isinstance(place, list) else key
            place = place[key]
        inside[key] = _pick(JSON_VALUES, rng)
    return json.dumps(data).encode()


def npy_bytes(rng: Generator) -> bytes:
    """A random header and a few bytes."""
    numbers = ["0", "1", "2", "-1", *map(str, SIZES), "True", "3L", "1.5"]
    shape = ",".join(_pick(numbers, rng) for _ in range(int(rng.integers(4))))
    kinds = ["<f8", ">i2", "|b1", "|u1", "<U0", "|S0", "|V0", "|O", "<M8[D]", "<c16", "(9,9)f8"]
    descr = _pick([repr(kind) for kind in kinds] + ["[('a','<f8')]", "()", "[]", "7"], rng)
    order = _pick(["True", "False", "None"], rng)
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': ({shape},)}}".encode() + b"\n"
    version = _pick([b"\1\0", b"\1\0", b"\2\0", b"\3\0"], rng)
    size = struct.pack("<H" if version == b"\1\0" else "<I", len(header))
    return b"\x93NUMPY" + version + size + header + bytes(int(rng.integers(64)))


def npz_bytes(rng: Generator) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", _pick([0, 8], rng)) as archive:
        for name in ("X", "y", "t")[: int(rng.integers(1, 4))]:
            array = np.ones((2, 2)) if name == "X" else np.arange(2)
            archive.writestr(f"{name}.npy", npy_bytes(rng) if rng.random() < 0.7 else npy(array))
    return file.getvalue()


def written_text(rng: Generator) -> bytes:
    """Numbers as people write them, in a random encoding."""
    n_columns, delimiter = int(rng.integers(1, 5)), _pick([";", "\t", "|", ","], rng)
    cells = ["1,5", "2,25", "1.185", "950", "x", "", "5 %", "7 €", "WAHR", *WRITTEN_WORDS]
    lines = ["sep=" + delimiter] if rng.random() < 0.2 else []
    for _ in range(int(rng.integers(1, 9))):
        few = [_pick(cells, rng) for _ in range(2)]  # a column has few kinds of cells
        lines.append(delimiter.join(_pick(few, rng) for _ in range(n_columns)))
    text = _pick(["\n", "\r\n"], rng).join(lines)
    return text.encode(_pick(["utf-8", "utf-16", "cp1252", "utf-8-sig"], rng), "replace")


def _sheet(rng: Generator) -> list[list[Any]]:
    words = ["a", "b", "id", "", "1,5", "1.185,43 €", "-", "#N/A", "<>&", "\x01", "5 %"]
    values = [*words, 1, 2.5, -1e300, 1e-320, True, None, 45657, 1e18, -5]
    width = int(rng.integers(1, 5))
    return [[_pick(values, rng) for _ in range(width)] for _ in range(int(rng.integers(7)))]


def xlsx_bytes(rng: Generator) -> bytes:
    """A random sheet, in which some cells lack their places or have others."""
    parts = xlsx_parts({"s": _sheet(rng), "t": _sheet(rng)})
    name = _pick(["xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"], rng)
    places = ["", ' r="XFD1"', ' r="A1048576"', ' r="B2"', ' r="A0"', ' r="ZZZZ9"', " r='C3'"]
    styles = ["", ' s="1"', ' s="2"', ' s="99"', ' t="d"', ' t="str"', ' t="inlineStr"']
    some = rng.random() * 0.5

    def other(match: re.Match[str]) -> str:
        return _pick(places, rng) + _pick(styles, rng) if rng.random() < some else match[0]

    parts[name] = re.sub(r' r="[A-Z]+\d+"', other, parts[name])
    return zipped(parts)


def ods_bytes(rng: Generator) -> bytes:
    """A random sheet, in which some rows and cells are repeated."""
    parts = ods_parts({"s": _sheet(rng), "t": _sheet(rng)}, padding=rng.random() < 0.5)
    some = rng.random() * 0.5

    def other(match: re.Match[str]) -> str:
        times = _pick([0, 1, 2, 100, 10**5, 2**31, -1], rng)
        repeated = "rows" if "row" in match[0] else "columns"
        is_changed = rng.random() < some
        return f'{match[0]} table:number-{repeated}-repeated="{times}"' if is_changed else match[0]

    parts["content.xml"] = re.sub(r"<table:table-(row|cell)\b", other, parts["content.xml"])
    return zipped(parts)


GRAMMARS: dict[str, Callable[[Generator], bytes]] = {
    "csv": csv_text,
    "tsv": csv_text,
    "arff": arff_text,
    "jsonl": json_text,
    "posterior": partial(json_document, "posterior"),
    "npy": npy_bytes,
    "npz": npz_bytes,
    "txt": written_text,
    "json": json_text,
    "xlsx": xlsx_bytes,
    "ods": ods_bytes,
}


def _span(content: bytes, rng: Generator) -> tuple[int, int]:
    """Start and end of a piece; a short piece is as likely as a long one."""
    start = int(rng.integers(len(content) + 1))
    longest = 16 if rng.random() < 0.5 else len(content)
    return start, min(len(content), start + int(rng.integers(1, longest + 2)))


def _pick(things, rng: Generator):
    return things[int(rng.integers(len(things)))]
