"""Writes copies of texts with other words in them, for a teacher to label: TinyBERT's augmentation.

python augment_texts.py --task_name=nsmc --input_file=nsmc/ratings_train.txt --output_file=augmented.tsv
python run_classifier.py --task_name=nsmc ... --teacher=run/large --unlabelled_file=augmented.tsv
"""

from albert_tf.cli.augment_texts import run

if __name__ == "__main__":
    run()
