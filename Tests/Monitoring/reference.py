"""Generates the tables of docs/metrics.md from the help texts of the processes."""
import re

from exposition import families
from processes import ROOT

DOCUMENT = ROOT / "docs/metrics.md"
TABLE = re.compile(r"(<!-- (worker|gateway|both) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(found):
    lines = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for name, family in sorted(found.items()):
        labels = ", ".join(f"`{label}`" for label in family.labels)
        lines.append(f"| `{name}` | {family.kind} | {labels} | {family.help.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def expected(worker, gateway):
    """Returns the document with tables of the metrics of a worker and a gateway."""
    worker, gateway = families(worker), families(gateway)
    both = worker.keys() & gateway.keys()
    tables = {
        "both": {name: worker[name] for name in both},
        "worker": {name: family for name, family in worker.items() if name not in both},
        "gateway": {name: family for name, family in gateway.items() if name not in both},
    }
    return TABLE.sub(lambda match: match[1] + table(tables[match[2]]) + match[3], DOCUMENT.read_text())
