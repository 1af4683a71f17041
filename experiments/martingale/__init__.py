"""Interactive martingale boosting: the document's tables and figures beside ours, and more."""
