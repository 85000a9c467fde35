"""A trained model for people: ask, rank, score, embed, export."""
