"""Predicts the lines of a file of any length: an answer a line, in the file's order, resumed where it was stopped.

python predict.py --model_dir=run/nsmc --input_file=reviews.txt.gz --output_file=predictions.jsonl
"""

from albert_tf.cli.predict import run

if __name__ == "__main__":
    run()
