"""Ignored errors have a reason: no catch block is empty, and each try? has a comment or another error is thrown."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The number of lines before and after that may belong to a statement.
REACH = 3


def lines(pattern):
    """Yields the matching lines, each with the lines before and after it."""
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
    def test_no_catch_block_is_empty(self):
        self.assertEqual([place for place, *_ in lines(r"\bcatch\s*\{\s*\}")], [])

    def test_ignored_errors_have_a_reason(self):
        found = list(lines(r"\btry\?"))
        self.assertGreater(len(found), 0)
        self.assertEqual([place for place, *context in found if not has_reason(*context)], [])


if __name__ == "__main__":
    unittest.main()
