"""What a run computes on: TPUs, GPUs or CPUs, of one machine or several."""
