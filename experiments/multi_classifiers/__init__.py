"""A committee, its members and its combinations: the slides Multi-classifiers and Nair (2015)."""
