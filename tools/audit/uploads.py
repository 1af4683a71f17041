"""Hostile uploads: each is refused with a clear error, or becomes a table; the studio stays alive.

The studio reads an upload in a child process of its own, with limits of time and memory. The audit
checks from outside that these limits hold.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
import struct
import zipfile
from collections.abc import Iterator
from itertools import product
from time import perf_counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from tools.audit._attacks import Attack
from tools.audit._studio import PeakMemory, served

from margrave.app.tables import csv_text

SECONDS = 75.0  # the studio's own limit is 60 s
MEMORY = 3 << 30  # bytes; the studio's own limit for reading a file is 2 GiB

File = tuple[str, bytes]
"""A name and a content."""


def _lines(*lines: str, encoding: str = "utf-8") -> bytes:
    return "\n".join(lines).encode(encoding)


def _table(n: int = 40) -> bytes:
    """A table that is read without any problem."""
    return _lines("a,b,target", *(f"{i},{i % 7},{'yes' if i % 3 else 'no'}" for i in range(n)))


def _parquet(table: pa.Table, **options: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def _zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../table.csv", content)
    return buffer.getvalue()


def text_files(rng: random.Random) -> Iterator[File]:
    """Text files that are no usual tables."""
    yield "empty.csv", b""
    yield "newline.csv", b"\n"
    yield "newlines.csv", b"\n" * 100_000
    yield "header.csv", b"a,b,c"
    yield "header_only.csv", b"a,b,c\n"
    yield "one_column.csv", _lines("a", *("1",) * 50)
    yield "no_header.csv", _lines(*("1,2,3",) * 50)
    yield "ragged.csv", _lines("a,b", *("1," * (i % 9) + "2" for i in range(500)))
    yield "widening.csv", _lines(*("," * i for i in range(2000)))
    yield "nul.csv", _table().replace(b"7", b"\x00")
    yield "nuls.csv", b"\x00" * 100_000
    yield "junk.csv", rng.randbytes(100_000)
    yield "huge_cell.csv", _lines("a,target", "x" * 20_000_000 + ",yes", "1,no")
    yield "open_quote.csv", b'a,target\n"' + b"x,yes\n" * 200_000
    yield "quotes.csv", b'"' * 500_000
    yield "many_columns.csv", _lines(",".join(f"c{i}" for i in range(100_000)), "1," * 99_999 + "1")
    yield "same_names.csv", _lines(",".join("a" * 50), *((",".join("1" * 50)),) * 40)
    yield "empty_names.csv", _lines("," * 20, *("," * 20,) * 40)
    yield "long_name.csv", _lines("x" * 100_000 + ",target", *("1,yes", "2,no") * 20)
    yield (
        "formulas.csv",
        _lines(
            "=cmd|' /C calc'!A0,target",
            *('=HYPERLINK("http://evil.example"),yes', "@SUM(1),no") * 20,
        ),
    )
    yield "script.csv", _lines("<script>alert(1)</script>,target", *("<img>,yes", "2,no") * 20)
    yield "utf16.csv", _table().decode().encode("utf-16")
    yield "utf16_no_mark.csv", _table().decode().encode("utf-16-le")
    yield "utf32.csv", _table().decode().encode("utf-32")
    yield "utf7.csv", b"+AGE-,target\n1,yes\n" * 20
    yield "latin1.csv", _lines("größe,target", *("1,yes", "2,nö") * 20, encoding="latin-1")
    yield "mixed.csv", _lines("a,target", *("ä,yes",) * 20) + b"\n\xff,no\n" * 20
    yield "bidi.csv", _lines("\u202ea,target", *("\u202e1,yes", "2,no") * 20)
    yield "surrogates.csv", b"a,target\n" + b"\xed\xa0\x80,yes\n1,no\n" * 20
    yield "carriage.csv", _table().replace(b"\n", b"\r")
    yield "numbers.csv", _lines("a,target", *(f"{'9' * 5000},yes", "1e999999,no") * 20)
    yield "whole.csv", _lines("a,target", *(f"{'9' * 4000},yes", "1,no") * 20)
    yield "nan.csv", _lines("a,target", *("nan,nan", "inf,-inf") * 30)
    yield "dates.csv", _lines("a,target", *("99999-99-99,yes", "0000-00-00,no") * 20)
    yield "too_many_rows.csv", b"a,target\n" + b"1,yes\n2,no\n" * 150_000
    yield "distinct.csv", _lines("a,target", *(f"{i},{i}" for i in range(20_000)))
    yield "tabs.tsv", _table()
    yield "json.csv", b'{"a": [1, 2, 3]}' * 100
    yield "html.csv", b"<!doctype html><html><body>Not found</body></html>"
    yield "comment.csv", _lines("# a comment", "a,target", *("1,yes", "2,no") * 20)


def packed_files(rng: random.Random) -> Iterator[File]:
    """Compressed files, archives and other formats."""
    packed = gzip.compress(_table())
    yield "good.csv.gz", packed
    yield "short.csv.gz", packed[: len(packed) // 2]
    yield "checksum.csv.gz", packed[:-8] + b"\x00" * 8
    yield "tail.csv.gz", packed + rng.randbytes(100)
    yield "twice.csv.gz", gzip.compress(packed)
    yield "junk.csv.gz", rng.randbytes(50_000)
    yield "bomb.csv.gz", gzip.compress(b"a,target\n" + b"1,yes\n" * 60_000_000, 1)
    yield "zeros.csv.gz", gzip.compress(b"\x00" * 400_000_000, 1)
    yield "plain.csv.gz", _table()
    yield "zip.csv", _zipped(_table())
    yield "zip.csv.gz", _zipped(_table())
    yield "zip.parquet", _zipped(_table())
    yield "gzip.csv", packed
    yield "table.xlsx", _zipped(_table())
    yield "table.exe", b"MZ" + rng.randbytes(1000)
    yield "table", _table()
    yield ".csv", _table()
    yield "../../../etc/cron.d/table.csv", _table()
    yield "con.csv", _table()
    yield "a\x00b.csv", _table()
    yield "x" * 5000 + ".csv", _table()
    yield "😀\u202e.csv", _table()


def parquet_files(rng: random.Random) -> Iterator[File]:
    """Parquet files that are damaged, or much larger than they look."""
    n = 1000
    numbers = pa.table({"a": np.arange(n) * 1.0, "target": ["yes", "no"] * (n // 2)})
    good = _parquet(numbers)
    yield "good.parquet", good
    yield "short.parquet", good[: len(good) // 2]
    yield "no_footer.parquet", good[:-8]
    yield "footer_length.parquet", good[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1"
    yield "magic.parquet", b"PAR1" + rng.randbytes(1000) + b"PAR1"
    yield "empty.parquet", b""
    yield "text.parquet", _table()
    for i in range(6):
        altered = bytearray(good)
        for _ in range(20):
            altered[rng.randrange(4, len(altered) - 4)] = rng.randrange(256)
        yield f"altered_{i}.parquet", bytes(altered)
    yield "no_rows.parquet", _parquet(numbers.slice(0, 0))
    yield "no_columns.parquet", _parquet(numbers.select([]))
    yield "nested.parquet", _parquet(pa.table({"a": [[[1]]] * 50, "target": ["yes", "no"] * 25}))
    yield "struct.parquet", _parquet(pa.table({"a": [{"b": 1}] * 50, "target": ["y", "n"] * 25}))
    yield "binary.parquet", _parquet(pa.table({"a": [b"\xff\x00"] * 50, "target": ["y", "n"] * 25}))
    yield "nulls.parquet", _parquet(pa.table({"a": pa.nulls(50), "target": ["y", "n"] * 25}))
    yield (
        "decimals.parquet",
        _parquet(
            pa.table({"a": pa.array([1] * 50).cast(pa.decimal256(76)), "target": ["y", "n"] * 25})
        ),
    )
    kinds = [pa.time64("ns"), pa.time32("s"), pa.duration("ns"), pa.timestamp("us", tz="No/Zone")]
    for kind in (*kinds, pa.large_binary(), pa.binary(2), pa.map_(pa.string(), pa.int64())):
        odd = pa.array([1, 2] * 25, kind) if kind in kinds else pa.nulls(50, kind)
        table = pa.table({"a": odd, "target": ["y", "n"] * 25})
        yield f"{kind}.parquet".replace("/", "_"), _parquet(table)
    far = pa.array([1, 3_000_000] * 25, pa.date32())
    yield "far_dates.parquet", _parquet(pa.table({"a": far, "target": ["y", "n"] * 25}))
    yield "wide.parquet", _parquet(pa.table({f"c{i}": [1, 2] for i in range(5000)}))
    yield "rows_bomb.parquet", _parquet(pa.table({"a": np.zeros(60_000_000, np.int8)}))
    # A value that is repeated costs no bytes in the file, and its whole length in memory.
    for n_letters, n_rows in ((60_000, 1000), (60_000, 100_000), (2_000_000, 5000)):
        codes = pa.array(np.zeros(n_rows, np.int32))
        bomb = pa.DictionaryArray.from_arrays(codes, ["x" * n_letters])
        labels = ["yes", "no"] * (n_rows // 2)
        yield (
            f"repeated_{n_letters}_{n_rows}.parquet",
            _parquet(pa.table({"a": bomb, "target": labels})),
        )
    columns = {f"c{i}": np.zeros(190_000) for i in range(1000)}
    yield "wide_bomb.parquet", _parquet(pa.table(columns), compression="zstd")


def export_formulas() -> Attack:
    """Write cells and names of columns that a spreadsheet may run to CSV."""
    attack = Attack("formulas in exported CSV files", "an apostrophe before them, none at numbers")
    spaces = ("", " ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\ufeff", "\0", " \n ")
    for space, sign in product(spaces, "=+-@＝＋－＠"):
        cell = f"{space}{sign}1+cmd|' /C calc'!A0"
        text = csv_text(pd.DataFrame({cell: [cell, "-1.5"]}))
        written = list(csv.reader(io.StringIO(text, newline="")))
        attack.check(written == [["'" + cell], ["'" + cell], ["-1.5"]], repr(text))
    return attack


def run(seed: int, count: int | None) -> Iterator[Attack]:
    """Upload the files to a studio, or `count` of each kind."""
    expected = f"a table or a 4xx within {SECONDS:g} s, below {MEMORY >> 30} GB"
    with served() as server, server.client(timeout=300) as user:
        for name, kind in (
            ("hostile text files", text_files),
            ("hostile archives and names", packed_files),
            ("hostile Parquet files", parquet_files),
        ):
            attack, largest, slowest = Attack(name, expected), 0, 0.0
            for number, (file, content) in enumerate(kind(random.Random(seed))):  # noqa: S311
                if count is not None and number >= count:
                    break
                start = perf_counter()
                with PeakMemory(server) as peak:
                    response = user.http.post("/api/tables", files={"file": (file, content)})
                took = perf_counter() - start
                largest, slowest = max(largest, peak.bytes), max(slowest, took)
                status = response.status_code
                understood = status == 201 or (400 <= status < 500 and response.json()["error"])
                understood = understood and "could not be read as a table" not in response.text
                problem = f"{status} {response.text[:100]}" if not understood else ""
                if took > SECONDS:
                    problem = f"took {took:.0f} s"
                if peak.bytes > MEMORY:
                    problem = f"needed {peak.bytes / 1e9:.1f} GB"
                attack.check(not problem, f"{file[:60]}: {problem}")
            attack.check(server.alive(), "the studio does not respond afterwards")
            attack.measured = f"slowest {slowest:.1f} s, most memory {largest / 1e9:.2f} GB"
            yield attack
    yield export_formulas()
