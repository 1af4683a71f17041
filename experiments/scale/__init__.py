"""Growth of time with rows, workers and pairs."""
