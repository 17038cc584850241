"""Scores the lines of a file by how probable they are to a pre-trained model, or labels them without any training.

python score_text.py --input_file=reviews.txt.gz --output_file=scores.jsonl
python score_text.py --template_file=template.txt --input_file=reviews.tsv --output_file=labels.jsonl
"""

from albert_tf.cli.score_text import run

if __name__ == "__main__":
    run()
