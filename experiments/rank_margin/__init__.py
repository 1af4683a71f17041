"""Rank margin maximisation: the tables and figures of Marrocco et al. (2010), and more."""
