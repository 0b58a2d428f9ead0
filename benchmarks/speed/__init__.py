"""How fast a step is, as ratios: against the machine's limits, against itself with one kernel, and against its peers."""
