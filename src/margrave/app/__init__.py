"""What the command line and the studio share: tables in files, whole requests, reports.

Nothing here is public: users have the command ``margrave`` and :mod:`margrave.steer`.
"""
