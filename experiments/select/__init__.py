"""Local selection beside DESlib: the same members, the same tables of answers, ten methods."""  # noqa: A005
