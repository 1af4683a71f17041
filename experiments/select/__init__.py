"""Local selection against DESlib: the same members and scores, ten methods."""  # noqa: A005
