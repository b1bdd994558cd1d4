"""Small valid files of every kind that can be read; mutations start from them."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import sqlite3
import zipfile
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import scipy.io

from gammagmm.cli.sheet import fill_sheet
from gammagmm.labels.sheet import Sheet
from gammagmm.posterior.beta_binomials import BetaBinomialMixture
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.storage import posterior_to_text
from tests.support.tables import table_of
from tests.support.workbooks import ods, xlsx, zipped

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
PICKLE_FOLDER = "canary-of-a-pickle"
"""Folder that a pickle in these files makes in the working directory, if it is ever run."""

TABLE = np.array([[1.0, 2.5], [3.0, -4.25], [1e-7, 6.0], [7.0, 8.0]])


NAMED = table_of(TABLE, ("a", "=b"), ids=("u", "@v", "w", "x"))


class Trap:
    """An object that makes PICKLE_FOLDER when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (PICKLE_FOLDER,)


def csv_texts() -> list[bytes]:
    texts = [
        "a,b,c\n1,2.5,x\n3,,y\n-1e300,nan,z\n",
        '\ufeff"a";"b"\r\n"1";"2"\r\n"3,5";4\r\n',
        "1,2\n3,4\n\n5,6\n",
        'id,"a ""quoted"" name",note\n007,1,"two\nlines"\n8,?,N/A\n',
        "x\n1\n2\n",
        "a\tb\n1\t2\n1_000\t0x10\n",
        "k,v,,a,b\nx,1,,1,2\ny,2,,3,4\n,,,5,6\n,,,7,8\n,,,9,10\n,,,11,12\n",
    ]
    return [text.encode() for text in texts]


def arff_texts() -> list[bytes]:
    head = "% note\n@RELATION r\n@attribute 'the size' REAL\n@attribute n integer\n"
    texts = [
        head + "@attribute c {red, 'dark blue'}\n@DATA\n1.5,2,red\n?,-1e3,'dark blue'\n",
        head + "@attribute s string\n@data\n1,2,'it\\'s, so'\n3,4,\"?\"\n",
        "@attribute id integer\n@attribute a real\n@attribute outlier {yes,no}\n@data\n1,2,no\n"
        "2,9.5,'yes'\n",
    ]
    return [text.encode() for text in texts]


def json_lines() -> list[bytes]:
    rows = [{"a": 1, "b": "x"}, {"b": 2.5, "a": None, "c": True}, {"a": 10**30, "b": "\u202e"}]
    return ["\n".join(map(json.dumps, rows)).encode(), b'{"x": NaN}\n\n{"x": -Infinity}\n{"x": 3}']


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npys() -> list[bytes]:
    objects = np.empty((2, 2), dtype=object)
    objects[:] = Trap()
    arrays = [TABLE, TABLE.T.astype(np.int8), TABLE[:, 0], TABLE > 2, np.asfortranarray(TABLE)]
    texts = [np.array(["u", "v"]), np.zeros(2, dtype=[("a", "<f8"), ("b", "S3")]), objects]
    return [npy(array) for array in [*arrays, *texts]]


def npzs() -> list[bytes]:
    trap = {"X": TABLE, "y": np.array([Trap()] * 4, dtype=object)}
    plain = {"X": TABLE, "y": np.array([0, 1, 0, 1]), "name": np.array(["u", "v", "w", "x"])}
    found = []
    for save, arrays in [(np.savez, plain), (np.savez_compressed, plain), (np.savez, trap)]:
        file = io.BytesIO()
        save(file, **arrays)
        found.append(file.getvalue())
    # NumPy writes neither such a compression nor such a name.
    for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", compression) as archive:
            archive.writestr("X.npy", npy(TABLE))
            archive.writestr("../../y.npy", npy(np.array([0, 1, 0, 1])))
        found.append(file.getvalue())
    return found


def mats() -> list[bytes]:
    found = []
    plain = {"X": TABLE, "y": np.array([[0], [1], [0], [1]])}
    odd = {"big": TABLE.astype(np.uint8), "y": np.array([["a", 1.0]], dtype=object), "s": {"t": 1}}
    for arrays, options in [
        (plain, {}),
        (plain, {"do_compression": True}),
        (odd, {}),
    ]:
        file = io.BytesIO()
        scipy.io.savemat(file, arrays, **options)
        found.append(file.getvalue())
    return found


def arrow_table() -> pa.Table:
    return pa.table(
        {
            "whole": pa.array([2**60 + 1, None, 3], pa.int64()),
            "small": pa.array([0.5, 1.5, None], pa.float32()),
            "truth": pa.array([True, False, None]),
            "text": pa.array(["a", None, "1"]),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
            "empty": pa.nulls(3),
            "list": pa.array([[1, 2], None, []]),
            "struct": pa.array([{"a": "x", "b": [1.5]}, None, {"a": "y", "b": []}]),
            "duration": pa.array([timedelta(1), None, timedelta(0)]),
        }
    )


def parquets() -> list[bytes]:
    found = []
    for compression in ("NONE", "SNAPPY", "ZSTD", "GZIP"):
        sink = io.BytesIO()
        pyarrow.parquet.write_table(arrow_table(), sink, compression=compression, row_group_size=2)
        found.append(sink.getvalue())
    return found


def feathers() -> list[bytes]:
    found = []
    for compression in ("uncompressed", "lz4", "zstd"):
        sink = io.BytesIO()
        pyarrow.feather.write_feather(arrow_table(), sink, compression=compression)
        found.append(sink.getvalue())
    view = pa.table({"text": pa.array(["a", None, "1"], pa.string_view())})
    for table in (arrow_table(), view):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        found.append(sink.getvalue())
    return found


def posteriors() -> list[GammaPosterior]:
    betas = BetaMixture(np.array([0.5, 0.49]), np.array([3.0, 30.0]), np.array([90.0, 70.0]))
    truncated = BetaMixture(betas.weights, betas.a, betas.b, 0.0, 0.9)
    counts = BetaBinomialMixture(betas.weights, betas.a, betas.b, 60, 0, 30, 1, 30)
    bounded = BetaBinomialMixture(betas.weights, betas.a, betas.b, 60, 0, 30, 2, 28, (2, 28))
    return [
        GammaPosterior(0.01, betas, np.nan, 0.002),
        GammaPosterior(0.01, truncated),
        GammaPosterior(0.01, counts, n_labels=30),
        GammaPosterior(0.01, bounded, n_labels=30),
        GammaPosterior.degenerate(),
    ]


def posterior_texts() -> list[bytes]:
    texts = [posterior_to_text(posterior).encode() for posterior in posteriors()]
    return [*texts, pickle.dumps(Trap())]


def sheet_texts() -> list[bytes]:
    text = fill_sheet(Sheet((3, 0, 2), (1, None, 0)), NAMED)
    return [text.encode(), b'\xef\xbb\xbf"row","a","anomaly"\r\n1.0,"1.0000000001","yes"\r\n']


def txt_texts() -> list[bytes]:
    """Tables as people write them, in several encodings."""
    texts = {
        "utf-8": 'sep=;\r\nPreis;Menge;Anteil\r\n"1.185,43 €";1.200;5,9 %\r\n-7,00 €;-;10 %\r\n',
        "utf-16": "Prix\tActif\tDate\r\n1\u202f185,43\tVRAI\t31/12/2024\r\n-2,5\tFAUX\t\r\n",
        "cp1252": "Größe|Betrag|Nr\n1'185.43|CHF 5.-|1,234\n2.5|(7.00)|#NV\n",
        "latin-1": "\x81;saldo\n1;1.234,56-\n2;R$ 3,00\n",
        "utf-16-be": "\ufeffa,b\n1,2\n",
    }
    short_header = b"a\tb\nu\t1\t2\nv\t3\t4\n"
    return [*(text.encode(name) for name, text in texts.items()), short_header]


def zips() -> list[bytes]:
    texts = csv_texts()
    members = [{"t.csv": texts[0]}, {"../t.txt": texts[1], "__MACOSX/x": b""}]
    members += [{"t.jsonl": json_lines()[0]}, {"a.csv": texts[0], "b.csv": texts[1]}]
    stored = zipped({"t.csv": texts[3]}, zipfile.ZIP_STORED)
    return [*map(zipped, members), stored, zipped({"t.csv": texts[0]}, zipfile.ZIP_LZMA)]


def json_texts() -> list[bytes]:
    rows = [{"a": 1, "b": "1,5"}, {"b": "2.5", "a": None, "c": True}, {"a": 10**30, "b": "x"}]
    columns = {"a": [1, 2.5, None], "b": ["x", "7 €", "-"]}
    named = {"a": {"0": 1, "1": 2}, "b": {"0": "x", "1": None}}
    texts = [json.dumps(value, indent=1) for value in (rows, columns, named)]
    return [text.encode() for text in [*texts, "\n".join(map(json.dumps, rows))]]


SHEETS = {
    "first": [
        *(["Title"], [], ["id", "a", "b", "day", "on"]),
        *(["u", 1.5, "1.185,43 €", date(2024, 12, 31), True], ["007", None, "-", None, False]),
    ],
    "second": [[1, 2.5], [3, datetime(2024, 12, 31, 14, 5)]],
}


def databases() -> list[bytes]:
    scripts = [
        "CREATE TABLE t (a REAL, b TEXT); INSERT INTO t VALUES (1.5, 'x'), (NULL, '1,5')",
        "CREATE TABLE t (a, b AS (hex(zeroblob(a)))); INSERT INTO t VALUES (x'00'), (2), (3)",
        "CREATE TABLE t (a); CREATE VIEW v AS SELECT * FROM t; CREATE INDEX i ON t (a); "
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 900) "
        "INSERT INTO t SELECT x FROM c",
        f"CREATE TABLE t (a, b); INSERT INTO t VALUES (1, '{'x' * 9000}'), (2, 'y')",
    ]
    found = []
    for script in scripts:
        connection = sqlite3.connect(":memory:")
        connection.executescript(f"PRAGMA page_size = 512; {script}")
        connection.commit()
        found.append(connection.serialize())
        connection.close()
    return found


KINDS: dict[str, Callable[[], list[bytes]]] = {
    "csv": csv_texts,
    "tsv": csv_texts,
    "csv.gz": lambda: [gzip.compress(text, mtime=0) for text in csv_texts()],
    "arff": arff_texts,
    "jsonl": json_lines,
    "jsonl.gz": lambda: [gzip.compress(text, mtime=0) for text in json_lines()],
    "mat": mats,
    "npy": npys,
    "npz": npzs,
    "parquet": parquets,
    "feather": feathers,
    "posterior": posterior_texts,
    "sheet": sheet_texts,
    "txt": txt_texts,
    "zip": zips,
    "json": json_texts,
    "xlsx": lambda: [
        xlsx(SHEETS),
        xlsx({"s": [["a", "b"], [1, "x"], ["#N/A", 2]]}),
        csv_texts()[1],
    ],
    "ods": lambda: [ods(SHEETS), ods(SHEETS, padding=False)],
    "sqlite": databases,
}
"""Each kind of file, and the function that makes valid files of it."""


@cache
def good_files(kind: str) -> tuple[bytes, ...]:
    """Contents of the valid files of a kind."""
    return tuple(KINDS[kind]())


def corpus() -> list[tuple[str, Path]]:
    """Kind and path of each file that once caused a fault."""
    return [(path.parent.name, path) for path in sorted(CORPUS.glob("*/*"))]
