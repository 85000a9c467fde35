"""Jobs on a trained model, such as `audit` and `explain`."""
