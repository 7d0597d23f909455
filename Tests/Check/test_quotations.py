"""Code quoted by documents matches its file: FILE of `<!-- quotes: FILE -->` contains the block that follows, apart
from its indentation."""
import re
import unittest

from test_links import ROOT, documents

QUOTATION = re.compile(r"<!-- quotes: (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


def is_quoted(block, text):
    """Whether the text contains the lines of the block in sequence."""
    wanted, found = lines(block), lines(text)
    return any(found[start : start + len(wanted)] == wanted for start in range(len(found) - len(wanted) + 1))


class Quotations(unittest.TestCase):
    def test_quotations_match_their_files(self):
        count = 0
        for path in documents():
            for file, block in QUOTATION.findall(path.read_text(encoding="utf-8")):
                count += 1
                with self.subTest(document=path.name, file=file):
                    self.assertTrue(is_quoted(block, (ROOT / file).read_text(encoding="utf-8")), block)
        self.assertGreater(count, 0)

    def test_detects_changed_lines(self):
        self.assertTrue(is_quoted("a\n  b", "x\n    a\n      b\ny"))
        self.assertFalse(is_quoted("a\n  c", "x\n    a\n      b\ny"))
