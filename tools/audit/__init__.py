"""An audit of Margrave that anyone can repeat: ``make audit`` or ``python -m tools.audit``.

Each module attacks one thing: requests, uploads, model files, library inputs, kills, load. It
yields an :class:`~tools.audit._attacks.Attack` for every kind of attack.
"""
