"""What the displays share: matplotlib, loaded when it is first needed, and colours."""

from typing import Any

from margrave._messages import missing_extra

# Okabe and Ito's colours stay apart for colour-blind readers; their yellow is too pale for lines.
BLACK, BLUE, VERMILION, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
COLOURS = (BLUE, VERMILION, GREEN, BLACK, PURPLE, ORANGE, SKY)


def pyplot(owner: str) -> Any:
    """Return `matplotlib.pyplot`, or say what the owner needs."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ImportError(missing_extra(owner, "matplotlib", "plot")) from error
    return plt
