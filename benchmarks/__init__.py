"""Speed against peers, as ratios measured in one run: ``make bench``."""
