"""Assembles the pages of the documentation site in the folder that is named: every Markdown page of the repository under its own path, and pages of the
HTTP API and of messages, written from the gateway's documents. Links to files that are no pages become text, because the site has no sources.
"""
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENTS = ROOT / "Sources/Halcyon/HalcyonGateway/Documents"
ELSEWHERE = ("Examples/", "clients/", ".github/", "monitoring/", "docs/site/")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def tracked(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def page_path(path):
    """The path of a page in the site; the README of the repository is its start."""
    return "index.md" if path == "README.md" else path


def converted(path, text, pages, images):
    """The text of a page with links that work in the site."""
    folder = pathlib.PurePosixPath(path).parent

    def link(match):
        mark, words, target = match.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        file, _, anchor = target.partition("#")
        found = pathlib.PurePosixPath(*normalized(folder / file))
        if str(found) == "docs":
            found = found / "README.md"
        if str(found) in pages:
            up = "../" * len(pathlib.PurePosixPath(page_path(path)).parent.parts)
            return f"[{words}]({up}{page_path(str(found))}{'#' + anchor if anchor else ''})"
        if str(found) in images:
            return match[0]
        return words if not mark else ""

    return LINK.sub(link, text)


def normalized(path):
    parts = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return parts


def operation_page(document):
    """The HTTP API as Markdown: each operation with its parameters, body and responses."""
    lines = ["# HTTP API operations", "", "Written from `/openapi.yaml`, which every gateway serves. [The guide to the API](../docs/gateway.md) explains it.", ""]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method not in ("get", "post", "delete", "head", "put"):
                continue
            lines += [f"## {method.upper()} {path}", "", operation.get("summary", ""), "", operation.get("description", ""), ""]
            parameters = [resolved(document, each) for each in methods.get("parameters", []) + operation.get("parameters", [])]
            if parameters:
                lines += ["| Parameter | In | Required | Meaning |", "|---|---|---|---|"]
                lines += [f"| `{each['name']}` | {each['in']} | {'yes' if each.get('required') else 'no'} | {cell(each.get('description', ''))} |" for each in parameters]
                lines.append("")
            body = resolved(document, operation.get("requestBody", {}))
            for kind, content in body.get("content", {}).items():
                lines += [f"Body: `{kind}`, {schema_name(content)}", ""]
            lines += ["| Status | Meaning |", "|---|---|"]
            for status, response in operation["responses"].items():
                lines.append(f"| {status} | {cell(resolved(document, response).get('description', ''))} |")
            lines.append("")
    return "\n".join(lines)


def message_page(document):
    """Topics, Redis channels, the event stream and webhooks as Markdown: each channel with its messages."""
    lines = ["# Messages", "", "Written from `/asyncapi.yaml`, which every gateway serves.", "", document["info"].get("description", ""), ""]
    for name, channel in document["channels"].items():
        lines += [f"## {channel['address'] or name}", "", channel.get("description", ""), ""]
        if channel.get("parameters"):
            lines += ["| Parameter | Meaning |", "|---|---|"]
            lines += [f"| `{key}` | {cell(value.get('description', ''))} |" for key, value in channel["parameters"].items()]
            lines.append("")
        for key, reference in channel["messages"].items():
            message = resolved(document, reference)
            lines += [f"Message `{message.get('name', key)}`: {message.get('summary', message.get('description', message.get('title', '')))}", ""]
    return "\n".join(lines)


def resolved(document, node):
    while "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def schema_name(content):
    reference = content.get("schema", {}).get("$ref", "")
    return f"`{reference.rsplit('/', 1)[-1]}`" if reference else "as described"


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def main():
    target = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(target, ignore_errors=True)
    pages = {path for path in tracked("*.md") if not path.startswith(ELSEWHERE) and not path.startswith(("Fuzzing/", "Tests/", "Chaos/"))}
    images = set(tracked("docs/images/*"))
    for path in pages:
        file = target / page_path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(converted(path, (ROOT / path).read_text(encoding="utf-8"), pages, images), encoding="utf-8")
    for path in images:
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, file)
    (target / "api").mkdir()
    for name, writer, source in (("http", operation_page, "openapi"), ("messages", message_page, "asyncapi")):
        document = yaml.safe_load((DOCUMENTS / f"{source}.yaml").read_text(encoding="utf-8"))
        (target / f"api/{name}.md").write_text(writer(document), encoding="utf-8")


main()
