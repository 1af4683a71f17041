"""Predict and check new rows: a table, or a folder that may be larger than memory."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from margrave.app.messages import InputError
from margrave.app.samples import Table, read_labels
from margrave.app.tables import write_table
from margrave.steer import Check, SteeredClassifier, positive_class, score_samples

_FILE_ENDINGS = (".csv", ".tsv", ".txt", ".gz")


def list_ignored(model: SteeredClassifier, frame: Any) -> list[str]:
    """List the columns of a table that a model does not use; raise an error if it lacks some."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # the model was trained on an array
        return []
    missing = [repr(name) for name in names if name not in frame.columns]
    if missing and model.scorer_.committee.encoder is None:  # an encoder checks the columns itself
        raise ValueError(f"The table lacks columns that the model needs: {', '.join(missing)}.")
    return [name for name in frame.columns if name not in set(names)]


def select_features(model: SteeredClassifier, frame: Any) -> tuple[Any, list[str]]:
    """Return a table in the form that a model accepts, and the columns that it does not use."""
    ignored, names = list_ignored(model, frame), getattr(model, "feature_names_in_", None)
    if names is None:
        return frame.to_numpy(), ignored
    if model.scorer_.committee.encoder is not None:
        return frame, ignored
    return frame[list(names)], ignored


def predict_rows(model: SteeredClassifier, X: Any) -> Any:
    """Return a table of each row's label (None if rejected), scores and whether it is rejected.

    With two classes, there is one score, larger towards the positive class, and the thresholds that
    it is compared with.
    """
    import pandas

    scores = score_samples(model, X)  # predict and decision_function would each compute them
    codes, labels = model.decision_.predict(scores), model.classes_.tolist()
    columns: dict[str, Any] = {"label": [None if code < 0 else labels[code] for code in codes]}
    if scores.ndim == 1:
        columns["score"] = scores if positive_class(model) == labels[1] else 0.0 - scores
        thresholds = list_thresholds(model)
        names = ("threshold",) if len(thresholds) == 1 else ("threshold_low", "threshold_high")
        columns |= dict(zip(names, thresholds, strict=True))
    else:
        values = model.decision_.decision_values(scores)
        columns |= {f"score_{label}": values[:, c] for c, label in enumerate(labels)}
    columns["rejected"] = (codes < 0).astype(int)
    return pandas.DataFrame(columns).astype({"label": object})


def list_thresholds(model: SteeredClassifier) -> list[float]:
    """List the one or two thresholds on the score towards the positive of two classes."""
    decision: Any = model.decision_
    if len(model.classes_) > 2:
        return []
    thresholds = sorted({decision.low, decision.high})
    if positive_class(model) == model.classes_.tolist()[1]:
        return thresholds
    return [0.0 - threshold for threshold in reversed(thresholds)]


def select_kept(table: Table, keep: str | None) -> list[str]:
    """Return the columns of a table that stay beside the predictions; None keeps them all.

    The text names columns, separated by commas; a name with a comma is in double quotes.
    """
    if keep is None:
        return list(table.frame.columns)
    kept = next(csv.reader([keep], skipinitialspace=True), [])
    for name in kept:
        table.column(name, "keep")
    return list(dict.fromkeys(kept))


def join_inputs(inputs: Any, predictions: Any) -> Any:
    """Put columns of the input before the predictions.

    An input column that has the name of a prediction gets the prefix "input_".
    """
    import pandas

    names = {}
    for name in inputs.columns:
        names[name] = name
        while names[name] in predictions or (names[name] != name and names[name] in inputs):
            names[name] = f"input_{names[name]}"
    kept = inputs.rename(columns=names).reset_index(drop=True)
    return pandas.concat([kept, predictions], axis=1)


def predict_folder(
    model: SteeredClassifier, new: Path, out: Path | None, keep: str | None
) -> dict[str, Any]:
    """Write the predictions for a folder to a new folder, one Parquet file per block of rows.

    The files are written to a temporary folder, which is renamed once it is complete.

    Parameters
    ----------
    model : SteeredClassifier
        The fitted model.
    new : Path
        The folder with the rows.
    out : Path or None
        The folder for the predictions; required.
    keep : str or None
        The columns to keep beside the predictions, as in :func:`select_kept`.

    Returns
    -------
    dict
        The numbers of rows and of rejected rows, and the columns that the model does not use.
    """
    import dask

    from margrave.app.folder import open_folder

    if out is None:
        problem = "is missing. Name a folder, because the rows are in a folder."
        raise InputError("out", problem, code="missing")
    _check_out(out)
    table = open_folder(new)
    frame: Any = table.frame
    ignored, kept = list_ignored(model, frame), select_kept(table, keep)
    target = Path(os.path.realpath(out))
    temporary = target.with_name(f"{target.name}.part")
    try:
        temporary.mkdir()
    except FileExistsError:
        raise _unusable_folder(
            out,
            f"cannot be written: its temporary folder {temporary} exists. Another run is writing "
            "it, or was interrupted. Remove this folder, or choose another one.",
        ) from None
    try:
        shared_model = dask.delayed(model, pure=False, traverse=False)
        predict_block = dask.delayed(_predict_block, pure=False, traverse=False)
        unused = set(ignored).difference(kept)
        used = frame[[c for c in frame.columns if c not in unused]] if unused else frame
        counts = dask.compute(
            *(
                predict_block(
                    shared_model, block, kept, str(temporary / f"part-{number:05d}.parquet")
                )
                for number, block in enumerate(used.to_delayed())
            )
        )
        if target.exists():
            temporary.chmod(target.stat().st_mode)
            target.rmdir()
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    n, rejected = (sum(column) for column in zip(*counts, strict=True))
    return {"n": n, "rejected": rejected, "ignored": ignored}


def _check_out(out: Path) -> None:
    """Raise an error if predictions cannot be written to a folder."""
    if out.suffix.lower() in _FILE_ENDINGS:
        problem = f"must name a folder, because the rows are in a folder; got {out}."
    elif out.exists() and not (out.is_dir() and not any(out.iterdir())):
        problem = f"must name a new or an empty folder; {out} exists."
    elif not out.absolute().parent.is_dir():
        problem = f"must be in a folder that exists; there is no {out.parent}."
    elif Path(os.path.realpath(out)).is_symlink():
        problem = f"must name a new folder; {out} is a link that leads back to itself."
    else:
        return
    raise _unusable_folder(out, problem)


def _unusable_folder(out: Path, problem: str) -> InputError:
    return InputError("out", problem, code="folder", received=str(out))


def check_folder(model: SteeredClassifier, labelled: Path, target: str, level: float) -> Check:
    """Check a model's guarantee on a folder of labelled rows, block by block.

    Parameters
    ----------
    model : SteeredClassifier
        The model, with a certificate.
    labelled : Path
        The folder with the labelled rows.
    target : str
        The column with the classes.
    level : float
        The largest probability of a false alarm.
    """
    from margrave import scale
    from margrave.app.folder import open_folder

    table = open_folder(labelled)
    table.column(target, "target")
    frame: Any = table.frame
    y = frame[[target]].map_partitions(
        _read_block_labels, table.name, target, model.classes_, meta=(target, object),
        enforce_metadata=False,
    )  # fmt: skip
    X = frame.drop(columns=target)
    if getattr(model, "feature_names_in_", None) is None:  # the model was trained on an array
        return scale.check(model, X.to_dask_array(), y, level=level)
    return scale.check(model, select_features(model, X)[0], y, level=level)


def _read_block_labels(block: Any, name: str, target: str, classes: NDArray[Any]) -> Any:
    """Return the labels of a block in the type of a model's classes."""
    from pandas import Series

    return Series(read_labels(Table(block, name), target, classes), index=block.index)


def _predict_block(
    model: SteeredClassifier, block: Any, kept: list[str], path: str
) -> tuple[int, int]:
    """Write the predictions for a block; return how many rows it has, and how many rejected."""
    from margrave.scale import plain_rows

    if not len(block):
        return 0, 0
    predictions = predict_rows(model, select_features(model, plain_rows(block))[0])
    write_table(join_inputs(block[kept], predictions), path)
    return len(predictions), int(predictions["rejected"].sum())
