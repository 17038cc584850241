"""Runs one of the project's commands in a process of its own."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run_stage(script: str, **flag_values) -> None:
    """Prints and runs a script of the top level; its output goes to the terminal.

    Raises:
        subprocess.CalledProcessError: The script failed.
    """
    arguments = [f"--{name}" if value is True else f"--{name}={value}" for name, value in flag_values.items()]
    print(f"\npython {script} {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, os.path.join(ROOT, script), *arguments], check=True)
