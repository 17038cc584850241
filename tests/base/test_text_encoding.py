"""Text that is not UTF-8 is named by its encoding where the bytes show it, whatever reads it."""

import pytest

from albert_tf.base.errors import InputError
from albert_tf.base.files import guess_encoding, read_text

CONVERT = "not valid UTF-8 but, by its looks, {name}; convert the labelled data to UTF-8 (iconv -f {name} -t UTF-8)"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("한글".encode("cp949"), "CP949"),
        ("caf\u00e9 na\u00efve".encode("latin-1"), None),
        ("영화".encode()[:-1], None),
        ("中文字".encode("gb18030"), None),
        (bytes(range(256)), None),
        ("가 1\n".encode("utf-16-le"), "UTF-16LE"),
    ],
)
def test_encoding_is_guessed_only_where_it_shows(content, expected):
    assert guess_encoding(content) == expected


@pytest.mark.parametrize(
    ("content", "number", "name"),
    [
        ("리뷰,감정\n좋았다,긍정\n".encode("cp949"), 1, "CP949"),
        ("text,label\n좋았다,긍정\n".encode("cp949"), 2, "CP949"),
        ("리뷰,감정\n좋았다,긍정\n".encode("utf-16"), 1, "UTF-16"),
        ("리뷰,감정\n".encode() + "좋았다,긍정\n".encode("cp949") + b"\xff\n", 2, "CP949"),
        ("리뷰,감정\n".encode() + b"caf\xe9,1\n", 2, None),
    ],
)
def test_file_of_another_encoding_is_refused_by_its_name_where_it_shows(tmp_path, content, number, name):
    path = tmp_path / "train.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as failure:
        read_text(path, "the labelled data")
    told = CONVERT.format(name=name) if name else "not valid UTF-8; convert the labelled data to UTF-8"
    assert str(failure.value) == f"{path}, line {number}: {told}"
