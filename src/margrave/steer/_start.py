"""How a dialog begins: with a trained model and tuning samples, or with a table only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_consistent_length, column_or_1d

from margrave import _labels
from margrave._asking import classes_of, columns_for, named_members, rows_of
from margrave._committee import Committee, checked_labels
from margrave.preference import Preference
from margrave.steer._columns import TableEncoder
from margrave.steer._combining import Alone, combined
from margrave.steer._issue import name_of
from margrave.steer._material import Material
from margrave.steer._members import Progress, cross_fitted, default_members
from margrave.steer._panel import Panel, Scorer, decimals_for
from margrave.steer._parts import Parts, blocks_of, certify_share, folds_of, parted
from margrave.steer._rows import Rows

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_LEAST = 10


@dataclass(frozen=True, eq=False)
class CertifyPart:
    """Samples that no step has seen, as the members see them.

    Attributes
    ----------
    X : Rows
        The samples.
    codes : ndarray
        Their classes.
    name : str
        What tells them from other samples.
    """

    X: Rows
    codes: Codes
    name: str

    @classmethod
    def of(cls, X: Any, codes: Codes, panel: Panel) -> CertifyPart:
        """The part, named by what a panel says about its samples."""
        return cls(Rows(X), codes, name_of(panel.raw(X), codes))


@dataclass(frozen=True, eq=False)
class Start:
    """What a dialog begins with.

    Attributes
    ----------
    material : Material
        The tuning samples.
    scorer : Scorer
        Of new samples.
    held : ndarray
        Scores of the tuning samples.
    certify : CertifyPart or None
        What is set aside.
    notes : tuple of str
        What a certificate should say about the samples.
    """

    material: Material
    scorer: Scorer
    held: Floats
    certify: CertifyPart | None = None
    notes: tuple[str, ...] = ()


def from_model(
    model: Any, X_tune: Any, y_tune: ArrayLike, positive: Any, groups: ArrayLike | None
) -> Start:
    """A trained classifier, or a list of them."""
    owner = "Dialog"
    alone = not isinstance(model, list | tuple | dict)
    pairs = named_members([model] if alone else model, owner)
    classes = _labels.union([(name, classes_of(name, member)) for name, member in pairs])
    codes = _codes_of(X_tune, y_tune, classes, owner)
    _check_all_there(classes, codes, owner)
    if alone:
        X_tune = columns_for(X_tune, None, pairs[0][0], model)
    together = None if groups is None else _one_each(groups, len(codes), "groups", owner)
    folds = folds_of(codes, together)
    given = Panel([name for name, _ in pairs], [one for _, one in pairs], classes)
    panel = given
    if alone and isinstance(model, Committee):  # its members may be weighed anew
        panel = Panel(model.member_names_, model.estimators_, classes)
    positive = _checked_positive(positive, classes, owner)
    material = Material(panel, panel.raw(X_tune), codes, positive, folds, Rows(X_tune), False)
    return _scored(material, given, X_tune) if alone else _scored(material)


def from_table(
    X: Any,
    y: ArrayLike,
    *,
    committee: Any,
    certify: Any,
    promise: Preference | None,
    delta: float,
    positive: Any,
    groups: ArrayLike | None,
    time: ArrayLike | None,
    n_jobs: int | None,
    random_state: Any,
    callback: Callable[[Progress], Any] | None,
) -> Start:
    """A table: samples are set aside, and a committee is trained on the rest."""
    owner = "Dialog.from_data"
    labels = _labels_of(X, y, owner)
    classes, codes = np.unique(labels, return_inverse=True)
    _check_sizes(classes, codes, owner)
    positive = _checked_positive(positive, classes, owner)
    together = None if groups is None else _one_each(groups, len(labels), "groups", owner)
    when = None if time is None else _one_each(time, len(labels), "time", owner)
    if together is not None and when is not None:
        raise ValueError(f"{owner} needs groups or time; got both.")
    own = isinstance(certify, tuple) and len(certify) == 2
    sized = codes
    if together is not None and isinstance(certify, str):  # one sample of each group certifies
        sized = codes[np.unique(together, return_index=True)[1]]
    share = certify_share(
        None if own else certify, promise, sized, tuple(classes.tolist()), positive, delta
    )
    parts = parted(labels, share, together, when, random_state)
    build, y_build = rows_of(X, parts.build), labels[parts.build]
    members, encoder = _to_train(committee, build, parts, random_state)
    build = build if encoder is None else encoder.transform(build)
    trained, raw = cross_fitted(members, build, y_build, parts.folds, n_jobs, callback)
    panel = Panel([name for name, _ in members], trained, classes, encoder)
    held = parts.held
    at = parts.build[held]
    folds = (
        folds_of(labels[at], None if together is None else together[at])
        if when is None
        else blocks_of(labels[at], when[at])
    )
    material = Material(
        panel,
        raw[held],
        codes[at],
        positive,
        folds,
        Rows(rows_of(build, held)),
        trained_on=True,
        in_time=when is not None,
    )
    part = None
    if own:
        part = certify_part(certify[0], certify[1], panel, owner)
    elif len(parts.certify):
        seen = panel.encoded(rows_of(X, parts.certify))
        part = CertifyPart.of(seen, codes[parts.certify], panel)
    return replace(_scored(material), certify=part, notes=_notes(together, when))


def _to_train(
    committee: Any, build: Any, parts: Parts, random_state: Any
) -> tuple[list[tuple[str, Any]], TableEncoder | None]:
    """Members to be trained, and what samples pass before: a user's on samples as they are."""
    if committee is None:
        smallest = min(len(training) for training, _ in parts.folds)
        return default_members(smallest, random_state), TableEncoder().fit(build)
    alone = not isinstance(committee, list | tuple | dict)
    return named_members([committee] if alone else committee, "Dialog.from_data"), None


def untouched(model: Any, X: Any, y: ArrayLike, positive: Any) -> Scorer:
    """The scores of a classifier that is trained on all samples and not steered."""
    labels = _labels_of(X, y, "SteeredClassifier")
    trained = clone(model).fit(X, labels)
    ((name, _),) = named_members([trained], "SteeredClassifier")
    panel = Panel([name], [trained], classes_of(name, trained))
    _checked_positive(positive, panel.classes, "SteeredClassifier")
    return _alone(panel, panel.raw(X))


def untrained(model: Any) -> Any:
    """A classifier, or a list of them, without what was learned; None where that cannot be."""
    try:
        if isinstance(model, list | tuple | dict):
            return [(name, clone(one)) for name, one in named_members(model, "Dialog")]
        return None if model is None else clone(model)
    except TypeError:  # no parameters to make it again from
        return None


def certify_part(X: Any, y: ArrayLike, panel: Panel, owner: str) -> CertifyPart:
    """Certify samples that a user brings."""
    codes = _codes_of(X, y, panel.classes, owner)
    return CertifyPart.of(panel.encoded(X), codes, panel)


def _scored(material: Material, model: Panel | None = None, X_tune: Any = None) -> Start:
    """How the samples are scored at the start: by the model itself, or by the committee weighed."""
    panel, raw = material.panel, material.raw
    if model is not None or len(panel.members) == 1:
        said = raw if model is None else model.raw(X_tune)
        scorer = _alone(model or panel, said)
        return Start(material, scorer, scorer.of_raw(said))
    heard = panel.probabilities
    scorer, held = material.cross_fitted(
        lambda at: combined(raw[at], heard, material.codes[at], material.k)
    )
    return Start(material, scorer, held)


def _alone(panel: Panel, said: Floats) -> Scorer:
    """The scores of a single classifier."""
    combine = Alone(bool(panel.probabilities[0]))
    return Scorer(panel, combine, decimals_for(combine(said)))


def _labels_of(X: Any, y: ArrayLike, owner: str) -> NDArray[Any]:
    """Labels of at least two classes, one for each sample."""
    labels = checked_labels(X, y, owner)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs samples of at least two classes; got one class, "
            f"{_labels.plain(classes[0])!r}."
        )
    return labels


def _codes_of(X: Any, y: ArrayLike, classes: NDArray[Any], owner: str) -> Codes:
    """Positions of labels, one for each sample."""
    check_consistent_length(X, y)
    return _labels.encode(column_or_1d(_labels.natural(y)), classes, f"{owner}: y")


def _check_sizes(classes: NDArray[Any], codes: Codes, owner: str) -> None:
    """Refuse too few samples to train, tune and certify on."""
    sizes = np.bincount(codes, minlength=len(classes))
    if sizes.min() < _LEAST:
        label = _labels.plain(classes[sizes.argmin()])
        raise ValueError(
            f"{owner} needs at least {_LEAST} samples of each class to train, tune and certify on; "
            f"got {sizes.min()} of {label!r}."
        )


def _check_all_there(classes: NDArray[Any], codes: Codes, owner: str) -> None:
    """Refuse tuning samples without some class."""
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        raise ValueError(
            f"{owner} needs tuning samples of every class; got none of "
            f"{_labels.plain(classes[sizes.argmin()])!r}."
        )


def _one_each(values: ArrayLike, n: int, name: str, owner: str) -> NDArray[Any]:
    """An entry for each sample."""
    array = np.asarray(values)
    if array.dtype == object and not _labels.has_missing(array):
        array = array.astype(str)  # of whatever kinds
    if array.shape != (n,):
        raise ValueError(
            f"{owner} needs {name} with an entry for each of {n} samples; got shape {array.shape}."
        )
    missing = np.isnat(array) if array.dtype.kind in "mM" else np.array(_labels.has_missing(array))
    if missing.any():
        raise ValueError(f"{owner} needs {name} without missing entries.")
    return array


def _checked_positive(positive: Any, classes: NDArray[Any], owner: str) -> Any:
    """The positive class: as given, or the second of two."""
    if positive is None:
        return _labels.plain(classes[1]) if len(classes) == 2 else None
    if positive not in classes.tolist():
        raise ValueError(
            f"{owner} needs positive to be one of {_labels.shown(classes)}; got {positive!r}."
        )
    return classes.tolist()[classes.tolist().index(positive)]


def _notes(groups: Any, time: Any) -> tuple[str, ...]:
    """What a certificate should say about the samples."""
    notes = []
    if groups is not None:
        notes.append(
            "groups were kept together; one sample of each certifies, so shares are over groups."
        )
    if time is not None:
        notes.append("the certify samples are the latest; it speaks of the time they are from.")
    return tuple(notes)
