"""What is in a shard, as text and plots."""
