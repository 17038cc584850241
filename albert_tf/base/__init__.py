"""The ground of every room: errors, files, settings and what a command says; nothing here knows of models."""
