"""How far the methods go: no document's study, but every user's question."""
