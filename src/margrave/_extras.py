"""The one message about an optional package that is not installed."""


def missing_extra(what: str, package: str, extra: str) -> str:
    """Say what needs a package that is not installed, and how to install it.

    Parameters
    ----------
    what : str
        What needs the package: a function, a command or an option, as the subject of a sentence.
    package : str
        The package that is not installed.
    extra : str
        The extra of Margrave that includes the package.
    """
    # Margrave is on no package index, so the command is one for a checkout.
    # Double quotes work in every shell, also on Windows.
    return (
        f"{what} needs {package}, which is not installed. Install Margrave with its extra "
        f'{extra!r}: run pip install ".[{extra}]" in a checkout of Margrave.'
    )
