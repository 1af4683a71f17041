"""The experiments of the source papers, and of Margrave's own methods: one folder each."""
