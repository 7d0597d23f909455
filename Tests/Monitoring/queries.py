"""The queries of the dashboard, alerts and recording rules."""
import json
import re

import yaml

from processes import MONITORING

# A metric with its label matchers. No function or keyword of PromQL has such a name.
SELECTOR = re.compile(r'\b((?:[a-z_]+:)?(?:halcyon|process)_[a-z0-9_]+(?::[a-z0-9_]+)?|up|ALERTS)\b(\{[^}]*\})?')
VALUES = {"$__rate_interval": "10s", "$job": "halcyon-.+", "$worker": ".+", "$lane": ".+"}


def selectors(expression):
    """Returns the selectors of an expression as `metric{…}`. Quoted strings contain no metrics."""
    return {name + (labels or "") for name, labels in SELECTOR.findall(expression)}


def metric(selector):
    return selector.split("{")[0]


def dashboard():
    return json.loads((MONITORING / "grafana/halcyon.json").read_text())


def panels():
    """Yields each query of each panel, with its variables set to all workers and lanes."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for variable, value in VALUES.items():
                expression = expression.replace(variable, value)
            yield panel["title"], expression


def variables():
    """Yields name, metric and label of each query variable."""
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], *re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()


def rules(file):
    groups = yaml.safe_load((MONITORING / file).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]
