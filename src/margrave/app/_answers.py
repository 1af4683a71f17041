"""Answers of a model to new rows: of a table, or of a folder that need not fit into memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from margrave.app._folder import open_folder
from margrave.app._samples import Table, labels_of
from margrave.app._table_file import write_table
from margrave.scale._predict import plain_rows
from margrave.steer._certificate import Check
from margrave.steer._steered import SteeredClassifier

_FILES = (".csv", ".tsv", ".txt", ".gz")


def features(model: SteeredClassifier, frame: Any) -> tuple[Any, list[str]]:
    """A table as a model takes it, and the columns that it does not use."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # it learned from an array
        return frame.to_numpy(), []
    ignored = [name for name in frame.columns if name not in set(names)]
    if model.scorer_.committee.encoder is None:
        missing = [repr(name) for name in names if name not in frame.columns]
        if missing:
            raise ValueError(f"The model needs columns that are not there: {', '.join(missing)}.")
        return frame[list(names)], ignored
    return frame, ignored


def answers_to(model: SteeredClassifier, X: Any) -> Any:
    """For each row its label (none if it is rejected), its scores, and whether it is rejected."""
    import pandas

    labels, scores = model.predict(X), model.decision_function(X)
    rejected = labels == model.reject_label_
    columns: dict[str, Any] = {
        "label": [
            None if no else label for label, no in zip(labels.tolist(), rejected, strict=True)
        ]
    }
    if scores.ndim == 1:
        columns["score"] = scores
    else:
        columns |= {f"score_{label}": scores[:, c] for c, label in enumerate(model.classes_)}
    return pandas.DataFrame({**columns, "rejected": rejected.astype(int)}).astype({"label": object})


def answer_folder(model: SteeredClassifier, new: Path, out: Path | None) -> dict[str, Any]:
    """Write a folder of Parquet files with the answers, one file for each block of rows.

    They are written beside the folder, which is there when all of them are.

    Parameters
    ----------
    model : SteeredClassifier
        Trained.
    new, out : Path
        Folders with the rows, and for the answers.
    """
    import dask

    if out is None or out.suffix.lower() in _FILES:
        got = "none" if out is None else f"{out}, which is a file's"
        wanted = "the name of a folder for the answers to a folder"
        raise ValueError(f"--out needs {wanted}; got {got}.")
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ValueError(f"--out needs a folder that is not there, or is empty; {out} is neither.")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"--out needs a folder that exists; there is no {out.parent}.")
    frame: Any = open_folder(new).frame
    _, ignored = features(model, frame._meta)
    beside = out.absolute().with_name(f"{out.name}.part")
    try:
        beside.mkdir()
    except FileExistsError:
        raise ValueError(
            f"--out needs {beside} to write to first, which is there already: another run is at "
            "work, or one was broken off. Remove it, or give another --out."
        ) from None
    try:
        sent = dask.delayed(model, pure=False, traverse=False)
        written = dask.delayed(_written, pure=False, traverse=False)
        used = frame if not ignored else frame[[c for c in frame.columns if c not in set(ignored)]]
        counts = dask.compute(
            *(
                written(sent, part, str(beside / f"part-{number:05d}.parquet"))
                for number, part in enumerate(used.to_delayed())
            )
        )
        if out.exists():
            out.rmdir()
        beside.rename(out)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    n, rejected = (sum(column) for column in zip(*counts, strict=True))
    return {"n": n, "rejected": rejected, "ignored": ignored}


def check_folder(model: SteeredClassifier, labelled: Path, target: str) -> Check:
    """Check a promise on a folder of labelled rows, block by block.

    Parameters
    ----------
    model : SteeredClassifier
        With a certificate.
    labelled : Path
        The folder.
    target : str
        The column with the classes.
    """
    table = open_folder(labelled)
    table.column(target, "--target")
    frame: Any = table.frame
    y = frame[[target]].map_partitions(
        _labels_in, table.name, target, model.classes_, meta=(target, object),
        enforce_metadata=False,
    )  # fmt: skip
    X = frame.drop(columns=target)
    if getattr(model, "feature_names_in_", None) is None:  # it learned from an array
        return model.check(X.to_dask_array(), y)
    return model.check(features(model, X)[0], y)


def _labels_in(part: Any, name: str, target: str, classes: NDArray[Any]) -> Any:
    """Labels of a block in the type of a model's classes."""
    from pandas import Series

    return Series(labels_of(Table(part, name), target, classes), index=part.index)


def _written(model: SteeredClassifier, part: Any, path: str) -> tuple[int, int]:
    """Answer the rows of a block, and write the answers."""
    if not len(part):
        return 0, 0
    answers = answers_to(model, features(model, plain_rows(part))[0])
    write_table(answers, path)
    return len(answers), int(answers["rejected"].sum())
