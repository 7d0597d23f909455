"""No error is dropped without a reason: no empty catch, and beside each try? a comment says why the error may go, unless another is thrown for it."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A statement may have begun so many lines before.
REACH = 3


def lines(pattern):
    """The lines that match, each with those before it and those behind it."""
    for path in sorted(ROOT.glob("Sources/**/*.swift")):
        text = path.read_text(encoding="utf-8").splitlines()
        for index, line in enumerate(text):
            if re.search(pattern, line) and not line.strip().startswith("//"):
                yield f"{path.relative_to(ROOT)}:{index + 1}", line, text[max(0, index - REACH) : index], text[index + 1 : index + 1 + REACH]


def has_reason(line, before, after):
    if "//" in line or any(text.strip().startswith("//") for text in before):
        return True
    statement = " ".join([line, *after])
    return re.search(r"^\s*guard .*?\belse\s*\{\s*throw ", statement) is not None


class Errors(unittest.TestCase):
    def test_no_catch_is_empty(self):
        self.assertEqual([place for place, *_ in lines(r"\bcatch\s*\{\s*\}")], [])

    def test_every_swallowed_error_has_its_reason(self):
        found = list(lines(r"\btry\?"))
        self.assertGreater(len(found), 0)
        self.assertEqual([place for place, *context in found if not has_reason(*context)], [])


if __name__ == "__main__":
    unittest.main()
