"""Reports of runs: one HTML file without external files."""
