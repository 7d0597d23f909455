"""Renders the chart with helm (HELM) and reads the rendered settings with Halcyon (HALCYON_EXECUTABLE)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/halcyon"
# Components of `tryout`, whose pods do not run Halcyon.
SERVERS = {"kafka", "redis"}
SECRET = "only-an-example-of-the-value-of-a-key"
SETS = sorted(path.name for path in (CHART / "ci").glob("*.yaml"))


class RenderError(Exception):
    """The error message of helm for values that it rejects."""


def run_helm(*arguments):
    done = subprocess.run([os.environ["HELM"], *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RenderError(done.stderr)
    return done.stdout


class Manifests:
    """The manifests rendered from a file in ci/, overridden by the values of a test."""

    def __init__(self, name="minimal-values.yaml", values=None, version="1.34.0"):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(values or {}, file)
            file.flush()
            text = run_helm(
                "template", "shop", CHART, "--namespace", "images", "--kube-version", version,
                "--values", CHART / "ci" / name, "--values", file.name)
        self.all = [document for document in yaml.safe_load_all(text) if document]

    def of(self, kind):
        return {document["metadata"]["name"]: document for document in self.all if document["kind"] == kind}

    def one(self, kind, component=None):
        """Returns the only manifest of a kind, or of a component among them."""
        found = [
            document for document in self.of(kind).values()
            if component in (None, document["metadata"]["labels"].get("app.kubernetes.io/component"))]
        assert len(found) == 1, f"{len(found)} of {kind} {component}"
        return found[0]

    @property
    def workers(self):
        return next(
            document for document in self.all if document["kind"] in ("Deployment", "StatefulSet")
            and document["metadata"]["labels"]["app.kubernetes.io/component"] == "worker")

    def pods(self):
        """The specification of each kind of pod of Halcyon, by component."""
        found = {}
        for document in self.all:
            component = document["metadata"]["labels"].get("app.kubernetes.io/component")
            if component in SERVERS:
                continue
            if document["kind"] in ("Deployment", "StatefulSet", "Job"):
                found[component] = document["spec"]["template"]["spec"]
            elif document["kind"] == "Pod":
                found[component] = document["spec"]
        return found

    def variables(self, component):
        """The environment of the container of a component, as far as the manifests define it. Keys of Secrets have the value SECRET."""
        container = self.pods()[component]["containers"][0]
        found = {}
        for source in container.get("envFrom", []):
            if "secretRef" in source:
                found.update(self.of("Secret").get(source["secretRef"]["name"], {}).get("stringData", {}))
        for variable in container["env"]:
            known = "shop-halcyon-worker-0" if "fieldRef" in variable.get("valueFrom", {}) else SECRET
            value = variable.get("value", known)
            found[variable["name"]] = re.sub(r"\$\(([-._a-zA-Z0-9]+)\)", lambda name: found[name[1]], value)
        return found

    def files(self, component):
        """The files of Secrets that the container of a component can read, each path with the Secret and the key."""
        pod = self.pods()[component]
        volumes = {volume["name"]: volume["secret"] for volume in pod["volumes"] if "secret" in volume}
        return {
            f"{mount['mountPath']}/{item['path']}": (volumes[mount["name"]]["secretName"], item["key"])
            for mount in pod["containers"][0]["volumeMounts"] if mount["name"] in volumes for item in volumes[mount["name"]]["items"]}

    def settings(self, component):
        """The effective settings of a component, as `halcyon config` prints them."""
        pod = self.pods()[component]
        name = next(volume for volume in pod["volumes"] if volume["name"] == "settings")["configMap"]["name"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "halcyon.yaml"
            # The local executable may have been built without TLS for Redis.
            path.write_text(self.of("ConfigMap")[name]["data"]["halcyon.yaml"].replace("rediss", "redis"), encoding="utf-8")
            variables = {name: value.replace("rediss", "redis") for name, value in self.variables(component).items()}
            assert variables["HALCYON_CONFIG"] == "/etc/halcyon/halcyon.yaml"
            done = subprocess.run(
                [os.environ["HALCYON_EXECUTABLE"], "config", "--json"], capture_output=True, text=True,
                env={**variables, "HALCYON_CONFIG": str(path)})
            assert done.returncode == 0, f"{component}: {done.stderr}"
            return {name: value["value"] for name, value in json.loads(done.stdout).items()}


def notes(name):
    """The notes of `helm install`, rendered as a manifest because helm prints notes only with a cluster."""
    with tempfile.TemporaryDirectory() as folder:
        chart = pathlib.Path(folder) / "halcyon"
        shutil.copytree(CHART, chart)
        text = (chart / "templates/NOTES.txt").read_text(encoding="utf-8")
        (chart / "templates/notes.yaml").write_text(
            '{{- define "notes" -}}' + text + '{{- end -}}notes: {{ include "notes" . | quote }}\n', encoding="utf-8")
        return yaml.safe_load(
            run_helm(
                "template", "shop", chart, "--namespace", "images", "--values", chart / "ci" / name, "--show-only",
                "templates/notes.yaml"))["notes"]


def seconds(text):
    """Parses a duration as Halcyon prints it."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    total, digits = 0, ""
    for letter in text.replace("ms", ""):
        if letter.isdigit():
            digits += letter
        else:
            total, digits = total + int(digits) * units[letter], ""
    return total
