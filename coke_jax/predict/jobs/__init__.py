"""Jobs on a trained model: questions about a whole graph."""
