"""One file for each version; a file that was released is never changed."""
