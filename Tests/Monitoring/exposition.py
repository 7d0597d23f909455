"""Parses metrics in Prometheus' text format 0.0.4."""
import dataclasses
import re

SAMPLE = re.compile(r'^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="(?:[^"\\]|\\.)*"')


@dataclasses.dataclass
class Family:
    kind: str = ""
    help: str = ""
    labels: tuple = ()
    series: int = 0


def families(text):
    """Returns the families by name."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, help_text = line.split(" ", 3)
            found.setdefault(name, Family()).help = help_text
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            found.setdefault(name, Family()).kind = kind
        elif line:
            name, labels, _ = SAMPLE.match(line).groups()
            if name not in found:
                name = re.sub("_(bucket|sum|count)$", "", name)
            family = found[name]
            family.labels = tuple(sorted(set(family.labels) | set(LABEL.findall(labels or "")) - {"le"}))
            family.series += 1
    return found


def names(text):
    """Returns the names of all series that queries may use."""
    found = set()
    for name, family in families(text).items():
        found |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if family.kind == "histogram" else {name}
    return found
