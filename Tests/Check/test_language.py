"""The language of the sources and documents (CONTRIBUTING.md, How to write): openings of doc comments, lengths of lines,
log messages, retired words and titles of commits. Each rule has few exceptions, with their reasons."""
import re
import subprocess
import unittest

from test_links import ROOT, documents

RELATIVE = {"What", "Whose", "Who", "Whoever", "Where", "Which", "When", "Why", "How", "Whether", "Whatever"}
# Lines over 120 characters: tables, addresses and scripts that would be harder to read in pieces.
LONG_LINES = 40
# Doc comments with a relative opening, in percent. Examples and quotations have some.
RELATIVE_SHARE = 3
# Types are called what the field calls them, not what this project once did. A dead letter is a term of messaging.
RETIRED_TYPES = re.compile(
    r"\b(?:class|struct|enum|actor|protocol)\s+((?!DeadLetter)\w*(?:Books?|Desk|Shelf|Letters?|Wish|Flight|Passenger|Door|Gatekeeper|Roll|Turns?|Trials?|Places?))\b"
)
# Retired phrases and their replacements.
RETIRED_PHRASES = {
    "anew": "again",
    "gets on": "makes progress",
    "get on with": "make progress with",
    "that is none": "that is invalid",
    "are told of": "are notified of",
    "is told of": "is notified of",
    "has a say": "rejects",
    "the book": "the documentation",
    "of one's own": "of your own, custom",
    "under way": "in flight",
}
LOG = re.compile(r"\blog\.(?:trace|debug|info|notice|warning|error|critical)\(\s*\"([^\"\\]*)\"")
# Older commits followed other rules.
RULES_SINCE = "2026-11-25T12:30:00Z"
SUBJECT_LENGTH = 72


def sources(*folders):
    names = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name.endswith(".swift") and (ROOT / name).exists()]


def doc_openings(text):
    """The first word of each doc comment."""
    return re.findall(r"^(?![ \t]*///).*\n[ \t]*/// (\w+)", text, re.MULTILINE)


def comments(text):
    """The comments of a Swift file, without code in backticks."""
    return re.sub(r"`[^`\n]*`", "", "\n".join(re.findall(r"(?:^|\s)//.*", text)))


def retired_phrases(text):
    found = []
    for phrase in RETIRED_PHRASES:
        found += [phrase] * len(re.findall(rf"\b{phrase}\b", text, re.IGNORECASE))
    return found


class Language(unittest.TestCase):
    def test_doc_comments_open_with_a_noun_or_a_verb(self):
        openings = [word for path in sources("Sources") for word in doc_openings(path.read_text(encoding="utf-8"))]
        relative = sum(word in RELATIVE for word in openings)
        self.assertGreater(len(openings), 1000)
        self.assertLess(100 * relative / len(openings), RELATIVE_SHARE, f"{relative} of {len(openings)}")

    def test_lines_fit(self):
        long = [
            f"{path.relative_to(ROOT)}:{number}"
            for path in sources("Sources")
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if len(line) > 120
        ]
        self.assertLessEqual(len(long), LONG_LINES, "\n".join(long))

    def test_types_have_standard_names(self):
        named = [name for path in sources("Sources") for name in RETIRED_TYPES.findall(path.read_text(encoding="utf-8"))]
        self.assertEqual(named, [])

    def test_comments_have_no_retired_phrases(self):
        for path in sources("Sources"):
            with self.subTest(file=str(path.relative_to(ROOT))):
                self.assertEqual(retired_phrases(comments(path.read_text(encoding="utf-8"))), [])

    def test_documents_have_no_retired_phrases(self):
        for path in documents():
            # It quotes bad examples.
            if path.name in ("CONTRIBUTING.md", "CHANGELOG.md"):
                continue
            with self.subTest(document=str(path.relative_to(ROOT))):
                self.assertEqual(retired_phrases(re.sub(r"`[^`\n]*`", "", path.read_text(encoding="utf-8"))), [])

    def test_log_messages_are_sentences(self):
        # Complete messages of two words, which operators search for.
        known = {
            "worker started", "worker recovered", "partitions assigned", "partitions revoked", "job ready", "job failed", "job cancelled", "job superseded",
            "job refused", "image ready", "webhook delivered", "batch completed",
        }
        short = [
            f"{path.relative_to(ROOT)}: {message}"
            for path in sources("Sources")
            for message in LOG.findall(path.read_text(encoding="utf-8"))
            if len(message.split()) < 3 and message not in known
        ]
        self.assertEqual(short, [])

    def test_commits_have_short_titles(self):
        log = subprocess.run(
            ["git", "log", "--no-merges", f"--since={RULES_SINCE}", "--format=%s"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        self.assertEqual([title for title in log if len(title) > SUBJECT_LENGTH], [])

    def test_detects_violations(self):
        self.assertEqual(doc_openings("\n/// What it does.\n\n/// A lease.\n"), ["What", "A"])
        self.assertEqual(RETIRED_TYPES.findall("final class LeaseBook {}\nstruct DeadLetterSummary {}\n"), ["LeaseBook"])
        self.assertEqual(retired_phrases("It is made anew, and gets on."), ["anew", "gets on"])
        self.assertEqual(LOG.findall('log.info("lost", ["a": 1])'), ["lost"])
        self.assertEqual(comments("let x = 1 // anew `book`"), " // anew ")


if __name__ == "__main__":
    unittest.main()
