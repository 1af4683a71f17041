"""Texts that are the same on every machine, for comparison with the stored ones."""

import os
import re

_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_NUMBER = re.compile(r"(\b(?:UTF|SHA)-\d+)|\d+(?:[.,]\d+)*(?:e[+-]\d+)?")


def masked(text, folder=None):
    """Replace each number by '#', each SHA-256 digest by 'DIGEST' and a folder by 'FOLDER'.

    Columns are as wide as their numbers, so the spaces before a number become one.
    """
    if folder is not None:
        text = text.replace(f"{folder}{os.sep}", "FOLDER/")
    text = _NUMBER.sub(lambda found: found[1] or "#", _DIGEST.sub("DIGEST", text))
    return re.sub(r" +#", " #", text)
