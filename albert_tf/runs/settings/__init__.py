"""The settings of every command that makes something, a class each."""
