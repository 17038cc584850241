"""What the notebooks of `notebooks/` share: installing, bars, live plots, tables, clocks, one's own files.

Importing it imports nothing, for its first use is to install what the rest needs.
"""
