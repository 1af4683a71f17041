"""The steering study: whether guarantees hold on new samples, and what they cost."""
