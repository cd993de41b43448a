"""Words that depend on a number."""

import pytest

from zerohop.serving.wording import counted


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (1, "argument", "1 argument"),
        (0, "argument", "0 arguments"),
        (2, "argument", "2 arguments"),
        (1, "batch", "1 batch"),
        (2, "batch", "2 batches"),
    ],
)
def test_one_is_one_and_all_others_are_several(count, noun, said):
    assert counted(count, noun) == said
