"""How many examples hypothesis draws where one takes long."""

from hypothesis import settings


def few(n: int) -> settings:
    """Draw n examples in the quick run, where others draw 25, and 8 n in the full run."""
    return settings(max_examples=n * settings().max_examples // 25)
