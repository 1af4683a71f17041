"""Comparing the options of all ways: a reply at once from the cheap ones, better ones as they come.

Whatever ends the search, the end of the options, the user or an interrupt, the best is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from time import perf_counter

from margrave._judge import Judge
from margrave.confusion import Confusion
from margrave.preference import Bound, Preference, PreferenceError
from margrave.steer._material import Material, Option
from margrave.steer._reply import Reply
from margrave.steer._ways import Request, Way


def may_reject(wanted: Preference) -> bool:
    """Whether a preference allows that some samples get no answer."""
    return any(bound.word == "rejected" and bound.limit > 0 for bound in wanted.bounds)


def check_wanted(wanted: Preference, matrix: Confusion) -> None:
    """Refuse what no answers to some samples could do, and counts that there cannot be.

    Raises
    ------
    PreferenceError
        If bounds contradict each other or the sizes of the classes.
    """
    wanted.check(matrix)
    for bound in wanted.bounds:
        size = int(matrix.counts[bound.cells(matrix)[1]].sum())
        if not bound.share and bound.limit > size:
            raise PreferenceError(
                f"'{bound}' counts more than the {size} samples that it speaks of."
            )


def wanted_of(
    wants: Sequence[Preference | str], before: Preference | None, matrix: Confusion
) -> Preference:
    """What is asked, checked against the samples.

    Parameters
    ----------
    wants : sequence of Preference or str
        What is asked now.
    before : Preference or None
        What still holds, except for the words that are said anew.
    matrix : Confusion
        Where the dialog stands.
    """
    if not wants:
        raise PreferenceError("Dialog.prefer needs a preference such as 'fp <= 5'; got none.")
    wanted = Preference(*wants)
    if before is not None:
        said = {_subject(bound, matrix) for bound in wanted.bounds}
        kept = [str(one) for one in before.bounds if _subject(one, matrix) not in said]
        wanted = Preference(*kept, wanted)
    check_wanted(wanted, matrix)
    return wanted


def _subject(bound: Bound, matrix: Confusion) -> tuple[str, tuple[str, ...]]:
    """What a bound speaks of: a word, and the classes it names or means."""
    meant = (str(matrix.positive),) if bound.of_positive else ()
    return bound.word, bound.labels or meant


class Search:
    """A request, and the best option so far.

    Parameters
    ----------
    wanted : Preference
        What is asked.
    material : Material
        The tuning samples.
    known : sequence of Option
        The start of the dialog, and where it stands.
    before : Confusion
        The matrix where it stands.
    ways : sequence of Way
        Who may make options.
    stopped : callable
        Whether the user has cancelled.
    """

    def __init__(
        self,
        wanted: Preference,
        material: Material,
        known: Sequence[Option],
        before: Confusion,
        ways: Sequence[Way],
        stopped: Callable[[], bool],
    ) -> None:
        self.wanted, self.material, self.before, self.ways = wanted, material, before, ways
        self.judge: Judge = material.judge(wanted)
        rejecting = may_reject(wanted) and any(way.rejects for way in ways)
        self.request = Request(
            wanted, material, self.judge, known, may_reject=rejecting, stopped=stopped
        )
        self.best: Option | None = None
        self.cheap: Option | None = None
        self.n_options = 0
        self.began = perf_counter()

    def replies(self, keep: Callable[[Reply], None]) -> Generator[Reply]:
        """Better and better replies; the last one is final, and kept before it is given.

        Who leaves early, or interrupts, keeps the best that was told so far; an error in a way
        keeps nothing.
        """
        told = False
        try:
            if list(self._tried(dear=False)):  # all of them: they are cheap
                told = True
                yield self._reply(final=False)
            for _ in self._tried(dear=True):
                told = True
                yield self._reply(final=False)
        except (GeneratorExit, KeyboardInterrupt):
            if told:
                keep(replace(self._reply(final=True), cancelled=True))
            raise
        if self.best is None:
            raise PreferenceError(
                f"Dialog.prefer needs a way that applies to '{self.wanted}'; "
                f"{', '.join(map(self._nothing, self.ways))} offered nothing."
            )
        last = replace(self._reply(final=True), cancelled=self.request.stopped())
        keep(last)
        yield last

    def _nothing(self, way: Way) -> str:
        """A way that offered nothing, with its reason if it tells one."""
        tells = getattr(way, "why_not", None)
        if tells is None:
            return way.name
        return f"{way.name} ({tells(self.request) or 'it is not better than the others here'})"

    def _tried(self, dear: bool) -> Iterator[bool]:
        """Try the options of the cheap or of the dear ways; True for each that is better."""
        verdict = None if self.best is None else self.judge.verdict(self.best.answers)
        for way in self.ways:
            if way.dear != dear:
                continue
            if dear and self.request.stopped():
                return
            for option in way.options(self.request):
                self.n_options += 1
                found = self.judge.verdict(option.answers)
                better = verdict is None or found < verdict
                if better and (not dear or self._worth_it(option)):
                    verdict, self.best = found, option
                    if not dear:
                        self.cheap = option
                    yield True
                if dear and self.request.stopped():
                    return

    def _worth_it(self, option: Option) -> bool:
        """Whether an option meets more than the cheap ways' best, or costs less beyond chance.

        Of several options that are as good, the one that looks best on these samples owes that to
        chance. So a dear one has to be better by two standard errors of the difference: of the
        samples that only one of the two gets wrong, each would be as likely to be either's.
        """
        if self.cheap is None:
            return True
        cheap, found = (self.judge.verdict(one.answers) for one in (self.cheap, option))
        if found.shortfall < cheap.shortfall:
            return True
        before, after = (self.judge.unspoken(one.answers) for one in (self.cheap, option))
        fewer, more = int((before & ~after).sum()), int((after & ~before).sum())
        return fewer > more and (fewer - more) ** 2 > 4 * (fewer + more)

    def _reply(self, final: bool) -> Reply:
        option = self.best
        if option is None:
            raise RuntimeError("There is no option yet.")
        after = self.judge.matrix(option.answers)
        return Reply(
            self.wanted,
            self.wanted.met(after),
            self.before,
            after,
            option.way,
            perf_counter() - self.began,
            self.n_options,
            final,
            option=option,
        )
