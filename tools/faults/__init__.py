"""Faults that the tests have to notice: planted by hand, and mutants drawn by a seed."""
