"""Using a trained model: predict, rank, score, embed, load and export."""
