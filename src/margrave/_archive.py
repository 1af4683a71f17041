"""The digest at the end of a saved file, and the card of a model in it.

This module imports no other package, so that a card is read at once: scikit-learn alone takes more
than a second to import.
"""

from __future__ import annotations

import json
import zipfile
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any

DIGEST = 64  # hexadecimal digits, the comment at the end of the archive
CARD = "card.json"
_MOST_CARD = 16 << 20  # bytes


def digest(body: bytes | memoryview) -> bytes:
    """Return the digest of the bytes before it."""
    return blake2b(body, digest_size=DIGEST // 2).hexdigest().encode()


def read_card(path: Path) -> dict[str, Any] | None:
    """Read the card in a model file; None if the file has none, or is damaged."""
    try:
        data = path.read_bytes()
        if digest(memoryview(data)[:-DIGEST]) != data[-DIGEST:]:
            return None
        with zipfile.ZipFile(BytesIO(data)) as archive:
            if archive.getinfo(CARD).file_size > _MOST_CARD:
                return None
            record = json.loads(archive.read(CARD))
    except Exception:  # loading the model reports what is wrong
        return None
    return record if isinstance(record, dict) and isinstance(record.get("card"), str) else None
