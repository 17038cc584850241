"""Code that is there for speed or memory; each module says what it gains and which command shows it."""
