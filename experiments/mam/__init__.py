"""Maximal average margin: its errors, its orders and its bounds, beside other methods."""
