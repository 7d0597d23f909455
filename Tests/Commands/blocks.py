"""Shell commands of the documentation: all code blocks, and the mark in the line before each."""
import pathlib
import re
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "charts/halcyon/README.md", ROOT / "Benchmarks/README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Reasons for not running a block: its requirement, and a pattern that its commands must match.
NEEDS = {
    "docker": r"\bdocker\b",
    "kubernetes": r"\b(helm|kubectl)\b",
    "minutes": r"\b(make|swift|scripts/|Benchmarks/)",
    "apache-kafka": r"\bKAFKA_HOME\b|exactly-once",
    "main": r"scripts/release",
}
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r" *(\$ |halcyon |curl |make |swift |docker |helm |kcat |redis-cli |scripts/)")
MARK = re.compile(r"^ *<!-- (?:needs: (?P<needs>[a-z-]+)|(?P<stays>stays)|(?P<empty>may find nothing)) -->$")


@dataclass(frozen=True)
class Block:
    """A code block of commands."""

    document: str
    line: int
    text: str
    # The reason for not running it, a key of NEEDS, or None.
    needs: str | None
    # Whether its last command runs until it is stopped.
    stays: bool = False
    # Whether its last command may find nothing and exit with 3.
    may_find_nothing: bool = False

    def __str__(self):
        return f"{self.document}:{self.line}"


def blocks(path, text):
    """Yields the blocks of a document.

    Raises ValueError for an unknown mark, or a mark that no command of its block requires."""
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        where = f"{path}:{line}"
        if match["language"] == "" and COMMAND.match(match["text"]):
            raise ValueError(f"{where}: commands must be in a block of sh")
        if match["language"] not in ("sh", "bash", "shell", "console"):
            continue
        before = text[: match.start()].rstrip("\n").rpartition("\n")[2]
        mark = MARK.match(before)
        if before.lstrip().startswith("<!--") and not mark:
            raise ValueError(f"{where}: {before.strip()} is not a mark")
        needs = mark["needs"] if mark else None
        if needs is not None and needs not in NEEDS:
            raise ValueError(f"{where}: {needs} is unknown; expected one of {', '.join(NEEDS)}")
        indent = match["indent"]
        commands = "".join(part.removeprefix(indent) for part in match["text"].splitlines(keepends=True))
        if needs is not None and not re.search(NEEDS[needs], commands):
            raise ValueError(f"{where}: no command requires {needs}")
        yield Block(str(path), line, commands, needs, bool(mark and mark["stays"]), bool(mark and mark["empty"]))


def all_blocks():
    """Returns the blocks of all documents."""
    return [
        block for path in DOCUMENTS if path.exists() for block in blocks(path.relative_to(ROOT), path.read_text(encoding="utf-8"))]
