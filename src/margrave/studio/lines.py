"""Two queues: training, which takes long, and everything else, which should not wait for it."""

from __future__ import annotations

from margrave.studio.jobs import Job, Queue, UnknownJob, Work

TRAIN = "train"


class Lines:
    """Both queues behind the face of one.

    Parameters
    ----------
    training : Queue
        For jobs of kind "train".
    talking : Queue
        For all others.
    """

    def __init__(self, training: Queue, talking: Queue) -> None:
        self.training = training
        self.talking = talking

    def _of(self, kind: str) -> Queue:
        return self.training if kind == TRAIN else self.talking

    def submit(self, owner: str, kind: str, dialog: str, work: Work) -> Job:
        """Let work be done in its line; one at a time for each dialog."""
        return self._of(kind).submit(owner, kind, dialog, work, lock_key=dialog)

    def job(self, owner: str, job_id: str) -> Job:
        """A user's job."""
        try:
            return self.talking.job(owner, job_id)
        except UnknownJob:
            return self.training.job(owner, job_id)

    def of_dialog(self, dialog: str) -> Job | None:
        """The newest job of a dialog that is not finished."""
        return self.talking.of_dialog(dialog) or self.training.of_dialog(dialog)

    def cancel(self, job: Job) -> None:
        """End a job that waits, and ask one that runs to stop."""
        self._of(job.kind).cancel(job)

    def shutdown(self, timeout: float) -> bool:
        """Take no more jobs, cancel all, and wait some seconds for those that run."""
        stopped = [queue.shutdown(timeout / 2) for queue in (self.talking, self.training)]
        return all(stopped)
