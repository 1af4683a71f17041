"""Steering: whether promises are kept, what they cost, and how many requests are met."""
