"""Opens a page to try a model on texts of your own.

python playground.py --model_dir=models/albert_ko_small
"""

from albert_tf.cli.playground import run

if __name__ == "__main__":
    run()
