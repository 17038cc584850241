"""Builds a Korean WordPiece vocabulary from text: vocab.txt and tokenizer.json in --output_dir.

python build_vocab.py --input_file=corpus/*.txt --output_dir=vocab --vocab_size=32000
python build_vocab.py --assign_unused=새말,##새끝 --vocab_file=vocab/vocab.txt --output_dir=vocab2
python build_vocab.py --report --vocab_file=vocab/vocab.txt --input_file=reviews.txt --output_dir=report
"""

from albert_tf.cli.build_vocab import build_vocab

if __name__ == "__main__":
    build_vocab()
