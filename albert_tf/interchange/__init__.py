"""Models that come in and go out: what others need of a run."""
