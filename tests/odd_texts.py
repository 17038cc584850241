"""Texts that are short, long, empty, or hold what few texts do."""

TEXTS = [
    "좋다",
    "정말 재미있고 배우들의 연기도 훌륭한 영화였다. 다시 보고 싶다! 친구들과 함께 한번 더 보러 갈 생각이다",
    "",
    "   \t ",
    "한글 한글 ㅋㅋㅋㅋ ㅠㅠ ＡＢＣ １２３ 👩‍🚀 é\u0301 \u200b끝",
    "\u0000 NUL \ufffd",
]
