"""What the source documents say, measured: one folder per document or pair of documents."""
