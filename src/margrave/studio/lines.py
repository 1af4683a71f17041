"""Two queues: one for training, which takes long, and one for everything else."""

from __future__ import annotations

from margrave.studio.jobs import Job, Queue, UnknownJob, Work

TRAIN = "train"


class Lines:
    """Both queues, with the methods of one.

    Parameters
    ----------
    training : Queue
        For jobs of kind "train".
    talking : Queue
        For all other jobs.
    """

    def __init__(self, training: Queue, talking: Queue) -> None:
        self.training = training
        self.talking = talking

    def _queue(self, kind: str) -> Queue:
        return self.training if kind == TRAIN else self.talking

    def submit(self, owner: str, kind: str, dialog: str, work: Work) -> Job:
        """Add a job to its queue; one job at a time runs for each dialog."""
        return self._queue(kind).submit(owner, kind, dialog, work, lock_key=dialog)

    def job(self, owner: str, job_id: str) -> Job:
        """Return a user's job."""
        try:
            return self.talking.job(owner, job_id)
        except UnknownJob:
            return self.training.job(owner, job_id)

    def of_dialog(self, dialog: str) -> Job | None:
        """The newest unfinished job of a dialog."""
        return self.talking.of_dialog(dialog) or self.training.of_dialog(dialog)

    def cancel(self, job: Job) -> None:
        """Cancel a waiting job, or request a running one to stop."""
        self._queue(job.kind).cancel(job)

    def shutdown(self, timeout: float) -> bool:
        """Accept no more jobs, cancel all, and wait `timeout` seconds for the running ones."""
        stopped = [queue.shutdown(timeout / 2) for queue in (self.talking, self.training)]
        return all(stopped)
