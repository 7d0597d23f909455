"""What dashboard, alerts and recording rules ask of Prometheus."""
import json
import re

import yaml

from processes import MONITORING

# A metric, with what its labels must be. PromQL's functions and words are no metrics: none of ours is named like one.
SELECTOR = re.compile(r'\b((?:[a-z_]+:)?(?:halcyon|process)_[a-z0-9_]+(?::[a-z0-9_]+)?|up|ALERTS)\b(\{[^}]*\})?')
VALUES = {"$__rate_interval": "10s", "$job": "halcyon-.+", "$worker": ".+", "$lane": ".+"}


def selectors(expression):
    """As `metric{…}`; quoted texts have no metrics in them."""
    return {name + (labels or "") for name, labels in SELECTOR.findall(expression)}


def metric(selector):
    return selector.split("{")[0]


def dashboard():
    return json.loads((MONITORING / "grafana/halcyon.json").read_text())


def panels():
    """Each query of each panel, with its variables filled in: all workers and lanes."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for variable, value in VALUES.items():
                expression = expression.replace(variable, value)
            yield panel["title"], expression


def variables():
    """Metric and label of each variable that is looked up."""
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], *re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()


def rules(file):
    groups = yaml.safe_load((MONITORING / file).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]
