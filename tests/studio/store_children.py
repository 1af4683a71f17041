"""What the tests of the store run in other processes."""

from margrave.studio.store import Store, StoreError


def record(number):
    return {"preference": f"fp <= {number}", "met": number % 2 == 0}


def piece(number):
    return bytes([number % 256]) * (1000 + number)


def add_step(store, dialog_id, number, parent, **stands):
    """Add a step as the studio does."""
    stands = {"position": number, "undone": []} | stands
    return store.add_step(dialog_id, number, parent, record(number), piece(number), **stands)


def add_steps(url, dialog_id, first, told):
    """Add steps without end, and tell the number of each after it was stored."""
    with Store(url) as store:
        number = first
        while True:
            add_step(store, dialog_id, number, number - 1)
            told.send(number)
            number += 1


def open_at_once(url, barrier, told):
    """Open a new store when all are there to do so, and tell what comes of it."""
    store = Store(url)
    barrier.wait(60)
    try:
        store.open()
        store.add_user("local")
        told.send(store.has_user("local"))
    except StoreError as error:
        told.send(str(error))
    store.close()
