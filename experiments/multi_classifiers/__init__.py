"""Multi-classifiers and the survey of ensembles: a committee, its members, its combinations."""
