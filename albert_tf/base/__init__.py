"""What every room stands on: errors, files, settings and what a command says; nothing here knows of models."""
