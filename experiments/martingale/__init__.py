"""Interactive martingale boosting: the tables and figures of the paper beside ours."""
