"""The commands. Flags are known here and nowhere else."""
