"""The chart, rendered by the real helm (HELM), and Halcyon's own program (HALCYON_EXECUTABLE), which reads what was rendered."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/halcyon"
SETS = sorted(path.name for path in (CHART / "ci").glob("*.yaml"))


class Refused(Exception):
    """What helm says of values that it does not render."""


def run_helm(*arguments):
    done = subprocess.run([os.environ["HELM"], *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout


class Manifests:
    """What one set of values of ci/, with values of a test over it, makes."""

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
        """The only one of its kind, or of its component among those."""
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
        """The specification of each kind of pod, by component."""
        return {
            document["metadata"]["labels"]["app.kubernetes.io/component"]: document["spec"]["template"]["spec"]
            for document in self.all if document["kind"] in ("Deployment", "StatefulSet", "Job")}

    def variables(self, component):
        """What the container of such a pod has in its environment, as far as it is in the manifests."""
        container = self.pods()[component]["containers"][0]
        found = {}
        for source in container.get("envFrom", []):
            found.update(self.of("Secret").get(source["secretRef"]["name"], {}).get("stringData", {}))
        for variable in container["env"]:
            found[variable["name"]] = variable.get("value", "shop-halcyon-worker-0")
        return found

    def settings(self, component):
        """Halcyon's effective settings in such a pod, by its own account: each its value and where that comes from."""
        pod = self.pods()[component]
        name = next(volume for volume in pod["volumes"] if volume["name"] == "settings")["configMap"]["name"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "halcyon.yaml"
            # Whether the program here was built with TLS for Redis is no matter of the chart.
            path.write_text(self.of("ConfigMap")[name]["data"]["halcyon.yaml"].replace("rediss", "redis"), encoding="utf-8")
            variables = {name: value.replace("rediss", "redis") for name, value in self.variables(component).items()}
            assert variables["HALCYON_CONFIG"] == "/etc/halcyon/halcyon.yaml"
            done = subprocess.run(
                [os.environ["HALCYON_EXECUTABLE"], "config", "--json"], capture_output=True, text=True,
                env={**variables, "HALCYON_CONFIG": str(path)})
            assert done.returncode == 0, f"{component}: {done.stderr}"
            return {name: value["value"] for name, value in json.loads(done.stdout).items()}


def notes(name):
    """What `helm install` says in the end. It is rendered as if it were a manifest, for helm shows notes to clusters alone."""
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
    """A duration as Halcyon prints it."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    total, digits = 0, ""
    for letter in text.replace("ms", ""):
        if letter.isdigit():
            digits += letter
        else:
            total, digits = total + int(digits) * units[letter], ""
    return total
