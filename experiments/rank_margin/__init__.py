"""Rank margin maximisation: the document's tables and figures beside ours, and what it lacks."""
