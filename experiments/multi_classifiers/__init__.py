"""Multi-classifiers (documents 001 and 003): a committee, its members and its combinations."""
