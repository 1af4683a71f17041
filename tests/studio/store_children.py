"""Dialogs for the tests of the store, and what these run in other processes."""

import os
import time

import numpy as np

from margrave.steer import GuaranteeError, RowSample
from margrave.studio.ledger import StoreLedger
from margrave.studio.store import Conflict, StepRow, Store, StoreError


def values(row):
    """The loaded values of a row."""
    return {name: value for name, value in vars(row).items() if not name.startswith("_")}


def record(number):
    return {"preference": f"fp <= {number}", "met": number % 2 == 0}


def piece(number):
    return bytes([number % 256]) * (1000 + number)


def new_step(number, parent=None):
    parent = max(0, number - 1) if parent is None else parent
    return StepRow(number=number, parent=parent, record=record(number), piece=piece(number))


def add_step(store, dialog_id, number, parent=None, **more):
    """Add a step as the studio does."""
    steps = [new_step(number, parent)]
    return store.change(dialog_id, steps=steps, **{"position": number, "undone": [], **more})


def add_trained(store, owner="local", title="Spam"):
    """Add a dialog with its start."""
    dialog_id = store.add_dialog(owner, title, None, {"kind": "committee"}).id
    add_step(store, dialog_id, 0, base=b"base", state="ready", facts={"n": 3})
    return dialog_id


# In other processes


def add_steps(url, dialog_id, first, report):
    """Add steps without end, and report the number of each after it was stored."""
    with Store(url) as store:
        number = first
        while True:
            add_step(store, dialog_id, number)
            report.send(number)
            number += 1


def open_at_once(url, barrier, report):
    """Open a new store when all processes are ready to do so, and report what happens."""
    store = Store(url)
    barrier.wait(60)
    try:
        store.open()
        store.add_user("local")
        report.send(store.has_user("local"))
    except StoreError as error:
        report.send(str(error))
    store.close()


def change_at_once(url, dialog_id, revision, barrier, report):
    """Change a dialog when all processes are ready to do so; report whether it was changed."""
    with Store(url) as store:
        barrier.wait(60)
        try:
            report.send(store.change(dialog_id, revision=revision) == revision + 1)
        except Conflict:
            report.send(False)


def use_at_once(url, barrier, report):
    """Use the same rows when all processes are ready to do so; report whether it was allowed."""
    rows = RowSample.of(np.arange(100.0)[:, None])
    with Store(url) as store:
        ledger, name = StoreLedger(store, "spam"), str(os.getpid())
        barrier.wait(60)
        try:
            with ledger.use(rows, name=name, preference="fp <= 1%", delta=0.05):
                report.send(True)
        except GuaranteeError:
            report.send(False)


def use_and_wait(url, report):
    """Use rows, and report it before the outcome is known."""
    with (
        Store(url) as store,
        StoreLedger(store, "spam").use(
            RowSample.of(np.arange(100.0)[:, None]), name="x", preference="fp <= 1%", delta=0.05
        ),
    ):
        report.send(True)
        time.sleep(600)


def claim(url, report):
    """Claim a store, report the error or None, and keep the claim until the process ends."""
    with Store(url) as store:
        try:
            store.claim("http://127.0.0.1:9/")
        except StoreError as error:
            report.send(str(error))
        else:
            report.send(None)
            time.sleep(600)
