"""The devices of a run: TPUs, GPUs or CPUs, of one machine or several."""
