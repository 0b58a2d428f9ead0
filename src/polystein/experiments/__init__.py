"""The paper's experiments, one file each."""
