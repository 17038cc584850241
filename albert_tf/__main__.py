"""`python -m albert_tf` is the command `albert-tf`."""

from albert_tf.cli.main import run

if __name__ == "__main__":
    run()
