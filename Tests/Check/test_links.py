"""Links between documents have targets: files of the repository and headings of their pages."""
import pathlib
import re
import subprocess
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?[^()\s]*)\)")
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*#*$", re.MULTILINE)


def documents():
    """Every Markdown file of the repository, including new ones."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in names.stdout.split("\0") if name and (ROOT / name).exists()]


def anchors(text):
    """The names that GitHub gives the headings of a page. It drops all but letters, digits, spaces, hyphens and
    underscores, and numbers repeated names."""
    found = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = "".join(letter for letter in words.lower() if letter.isalnum() or letter in " -_").replace(" ", "-")
        numbered, count = name, 0
        while numbered in found:
            count += 1
            numbered = f"{name}-{count}"
        found.add(numbered)
    return found


def dead_links(path, text):
    for target in LINK.findall(CODE.sub("", FENCE.sub("", text))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / urllib.parse.unquote(name)).resolve() if name else path
        if not file.exists():
            yield f"{target}: no such file"
        elif not file.is_relative_to(ROOT):
            yield f"{target}: leads out of the repository"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{target}: no such heading"


class Links(unittest.TestCase):
    def test_links_have_targets(self):
        for path in documents():
            with self.subTest(path.relative_to(ROOT)):
                self.assertEqual(list(dead_links(path, path.read_text(encoding="utf-8"))), [])

    def test_detects_dead_links(self):
        here = ROOT / "docs/here.md"
        text = "# One `two`: three\n[a](nowhere.md) [b](#one-two-three) [c](#four) ![d](../LICENSE) `[e](gone.md)` [f](https://example.org) [g](../../x)"
        with self.subTest("files"):
            self.assertEqual(
                [line.partition(":")[0] for line in dead_links(here, text.replace("[b](#one-two-three) [c](#four)", ""))], ["nowhere.md", "../../x"])
        self.assertEqual(anchors(text.split("\n")[0]), {"one-two-three"})
        self.assertEqual(anchors("# A\n## A\n```\n# no\n```\n"), {"a", "a-1"})

    def test_contents_list_every_page(self):
        contents = ROOT / "docs/README.md"
        linked = {(contents.parent / target.partition("#")[0]).resolve() for target in LINK.findall(contents.read_text(encoding="utf-8"))}
        self.assertEqual([path.name for path in sorted(contents.parent.glob("*.md")) if path != contents and path not in linked], [])


if __name__ == "__main__":
    unittest.main()
