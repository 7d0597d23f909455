"""Drives the dashboard in Chromium with a running `halcyon dev`: `dashboard.py GATEWAY ORIGIN [--screenshots FOLDER]`.

ORIGIN serves the sample photographs. HALCYON_KAFKA_BROKERS and HALCYON_REDIS_URL name that cluster, and
HALCYON_EXECUTABLE the program, from which separate gateways are started for checks that need a key or stop a gateway.
Each check prints a line. The first failure ends the script with status 1.
"""

import argparse
import contextlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "Support"))
from ports import reserve_port  # noqa: E402

TIMEOUT = 120_000
KEY = "a-key-of-sixteen-or-more"
HOSTILE = '"><img src=x onerror="window.stolen=1"><script>window.stolen=1</script>'

# Counts the object URLs of images that the page holds.
COUNTING = """
window.held = 0;
const [make, give] = [URL.createObjectURL, URL.revokeObjectURL];
URL.createObjectURL = (blob) => { window.held += 1; return make.call(URL, blob); };
URL.revokeObjectURL = (url) => { window.held -= 1; give.call(URL, url); };
addEventListener("securitypolicyviolation", (event) => console.error("policy: " + event.violatedDirective));
"""


class Dashboard:
    """A page with the dashboard of a gateway. Errors of the page and the browser are collected in `errors`."""

    def __init__(self, browser: Browser, gateway: str | None, **options):
        self.context = browser.new_context(**options)
        self.context.add_init_script(COUNTING)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(TIMEOUT)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._record_error)
        self.page.on("dialog", lambda dialog: (self.errors.append("a dialog"), dialog.dismiss()))
        if gateway is not None:
            self.page.goto(gateway + "/", wait_until="load")

    def _record_error(self, message):
        # Some checks cause refused or lost connections.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def live(self):
        expect(self.page.locator("#connection")).to_have_text("Live")
        return self

    def open(self, view: str):
        """Shows a view by its address, such as `jobs?q=timeout`."""
        self.page.evaluate("(hash) => { location.hash = hash; }", f"#{view}")
        expect(self.page.locator(f"#view-{view.split('?')[0].split('/')[0]}")).to_be_visible()
        return self

    def confirm(self, text: str, accept: bool = True):
        """Answers the dialog that asks for confirmation, and checks its text."""
        dialog = self.page.locator("#confirm")
        expect(dialog).to_contain_text(text)
        dialog.locator("#confirm-yes" if accept else "#confirm-no").click()
        expect(dialog).to_be_hidden()

    def submit(self, source: str, more: dict | None = None):
        page = self.page
        self.open("overview")
        page.locator("#source").fill(source)
        if more is not None:
            page.locator("#job details").evaluate("(details) => { details.open = true; }")
            page.locator("#more").fill(json.dumps(more))
        page.get_by_role("button", name="Submit").click()

    def status(self, text: str):
        expect(page_part(self, "#trial-status")).to_contain_text(text)

    def close(self):
        assert not self.errors, self.errors
        self.context.close()


def page_part(dashboard: Dashboard, selector: str):
    return dashboard.page.locator(selector)


def passed(text: str):
    print(f"ok  {text}", flush=True)


def post(gateway: str, jobs: list[dict]):
    """Submits jobs without the page."""
    body = "\n".join(map(json.dumps, jobs)).encode()
    request = urllib.request.Request(f"{gateway}/v1/jobs", body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request) as answer:
        answer.read()


def get(gateway: str, path: str) -> dict:
    with urllib.request.urlopen(gateway + path) as answer:
        return json.load(answer)


def wait(what: str, condition):
    """Waits until a condition is true. Errors of the gateway count as false."""
    end = time.monotonic() + TIMEOUT / 1000
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.HTTPError):
            if condition():
                return
        time.sleep(0.05)
    raise TimeoutError(what)


def await_state(gateway: str, id: str, state: str):
    """Waits until the history of the gateway has a state of a job."""
    wait(f"{id} is {state}", lambda: get(gateway, f"/v1/history/jobs/{id}")["states"][-1]["state"] == state)


@contextlib.contextmanager
def separate_gateway(port: int, **settings: str):
    """Runs `halcyon gateway` on the same cluster within the context."""
    arguments = [os.environ["HALCYON_EXECUTABLE"], "gateway", "--set", f"gateway.listen=127.0.0.1:{port}"]
    for name, value in settings.items():
        arguments += ["--set", f"gateway.{name.replace('_', '.')}={value}"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def await_ready(gateway: str):
    """Waits until a gateway is ready."""
    for _ in range(1200):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"{gateway}/readyz"):
                return
        time.sleep(0.1)
    raise TimeoutError(f"{gateway} is not ready")


# Checks.


def page_has_policy_and_etag(gateway: str):
    with urllib.request.urlopen(f"{gateway}/") as answer:
        policy, tag = answer.headers["Content-Security-Policy"], answer.headers["ETag"]
        text = answer.read().decode()
    assert "default-src 'none'" in policy and "unsafe" not in policy, policy
    assert "http://" not in text and 'src="//' not in text, "the page loads resources from other origins"
    request = urllib.request.Request(f"{gateway}/", headers={"If-None-Match": tag})
    try:
        urllib.request.urlopen(request)
        raise AssertionError("expected 304")
    except urllib.error.HTTPError as error:
        assert error.code == 304, error
    passed("the page has a content security policy and an ETag, and loads nothing from other origins")


def parses_streams_and_formats(dashboard: Dashboard):
    """A stream that is split at any position, numbers, and addresses of views."""
    found = dashboard.page.evaluate("""async () => {
        const { EventParser } = await import("/dashboard/stream.js");
        const { duration, short } = await import("/dashboard/format.js");
        const { parse, jobAddress } = await import("/dashboard/views.js");
        const text = ":\\r\\n\\r\\nid: 7\\r\\ndata: a\\r\\ndata:b\\r\\n\\r\\nid: 8\\n\\nevent: gap\\rdata: {}\\r\\r";
        const heard = [];
        for (let cut = 0; cut <= text.length; cut += 1) {
            const parser = new EventParser();
            heard.push(JSON.stringify([
                [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut)), ...parser.push("")], parser.lastId]));
        }
        return {
            heard: [...new Set(heard)],
            durations: [undefined, 0.1234, 9.87, 123.4, 1234, 99_999, 1e6, 1e8].map((value) => duration(value).replace("\\u00a0", " ")),
            numbers: [7, 123_456, 12_345_678].map(short),
            views: ["", "#none", "#jobs?q=a%26b&state=failed", jobAddress("a/b?c#d%"), "#job/", "#job/%"].map(parse),
        };
    }""")
    assert found["heard"] == ['[[{"type":"message","data":"a\\nb"},{"type":"gap","data":"{}"}],"8"]'], found["heard"]
    assert found["durations"] == ["–", "0.12 ms", "9.87 ms", "123 ms", "1.23 s", "100 s", "16.7 min", "27.8 h"], found
    assert found["numbers"] == ["7", "123,456", "12.3M"], found
    names = [(view["name"], view.get("id"), view["query"]) for view in found["views"]]
    assert names == [("overview", None, {}), ("overview", None, {}), ("jobs", None, {"q": "a&b", "state": "failed"}),
                     ("job", "a/b?c#d%", {}), ("overview", None, {}), ("overview", None, {})], names
    passed("streams are parsed in any pieces, and numbers and addresses are formatted")


def form_submits_jobs(dashboard: Dashboard, origin: str):
    dashboard.submit(f"{origin}/chelsea.jpg", {"altText": "A cat"})
    dashboard.status("Ready, from network.")
    picture = page_part(dashboard, "#trial-result img")
    expect(picture).to_have_attribute("alt", "A cat")
    size = picture.evaluate("async (image) => { await image.decode(); return [image.naturalWidth, image.naturalHeight]; }")
    assert size == [400, 300], size
    stages = page_part(dashboard, "#trial .waterfall th").all_text_contents()
    assert {"fetch", "decode", "encode", "store"} <= set(stages), stages
    expect(page_part(dashboard, ".gallery img").first).to_have_attribute("alt", "A cat")
    cards = page_part(dashboard, ".gallery li").count()
    dashboard.submit(f"{origin}/chelsea.jpg", {"altText": "A cat", "widht": 90})
    dashboard.status('Ready, from cache. Warning: unknown field "widht".')
    expect(page_part(dashboard, ".gallery li").first).to_contain_text("cache")
    expect(page_part(dashboard, ".gallery li")).to_have_count(cards)
    passed("a job of the form shows its image, timings and card; a second one is a cache hit, and its misspelled field is named")


def figures_come_from_the_gateway(dashboard: Dashboard, gateway: str):
    """A reload loses nothing, and the time range is a choice."""
    page = dashboard.page
    dashboard.open("overview")

    def matches():
        history = get(gateway, "/v1/history?seconds=300")
        ready, origins = history["ended"]["ready"], history["origins"]
        assert ready > 0
        for selector, text in [("#ready", f"{ready:,}"), ("#failed", f"{history['ended']['failed']:,}"),
                               ("#hits", f"{round(100 * origins['memory'] / ready)} %")]:
            expect(page.locator(selector)).to_have_text(text)
        assert page.locator("#throughput rect.ready").count() == 60
        assert "ready" in page.locator("#throughput svg").get_attribute("aria-label")

    matches()
    page.reload()
    dashboard.live()
    matches()
    expect(page.locator("#heard")).to_have_text("0")
    expect(page.locator(".gallery img").first).to_be_visible()
    expect(page.locator("#range option")).to_have_count(3)
    offered = page.locator("#range option").all_text_contents()
    assert offered[0] == "5 min", offered
    page.locator("#range").select_option(label="1 h")
    expect(page.locator("#figures-title")).to_have_text("Last hour")
    page.reload()
    expect(page.locator("#figures-title")).to_have_text("Last hour")
    page.locator("#range").select_option(label="5 min")
    dashboard.live()
    passed("figures and images survive a reload, and the time range is kept; ranges beyond the history are not offered")


def large_figures_fit(browser: Browser, gateway: str):
    """Latencies of hours and millions of jobs stay inside their tiles, and the labels of the chart inside the chart."""
    history = get(gateway, "/v1/history?seconds=300")
    history["ended"] = {"ready": 987_654_321, "failed": 123_456, "cancelled": 0, "superseded": 0}
    history["latency"] = {"p50": 9_999.4, "p95": 123_456.7, "p99": 7_199_000}
    for width in [390, 1280]:
        for peak in [1_234_567, 0.05]:
            history["bars"] = [{**bar, "ready": peak * history["step"]} for bar in history["bars"]]
            dashboard = Dashboard(browser, None, viewport={"width": width, "height": 900})
            page = dashboard.page
            page.route("**/v1/history?*", lambda route: route.fulfill(json=history))
            page.goto(gateway + "/")
            expect(page.locator("#p99")).to_have_text("120 min")
            expect(page.locator("#ready")).to_have_attribute("title", "987,654,321")
            expect(page.locator("#lag-normal")).not_to_have_text("–")
            clipped = page.evaluate("""() => {
                const inside = (outer, inner) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1;
                const tiles = [...document.querySelectorAll("#view-overview .tiles > div")].filter((tile) => {
                    const box = tile.getBoundingClientRect();
                    return [...tile.children].some((child) => {
                        const range = document.createRange();
                        range.selectNodeContents(child);
                        return !inside(box, range.getBoundingClientRect());
                    });
                }).map((tile) => tile.textContent);
                const chart = document.querySelector("#throughput svg").getBoundingClientRect();
                const labels = [...document.querySelectorAll("#throughput text")]
                    .filter((label) => !inside(chart, label.getBoundingClientRect())).map((label) => label.textContent);
                return [...tiles, ...labels];
            }""")
            assert clipped == [], (width, peak, clipped)
            dashboard.close()
    passed("large latencies, numbers of jobs and rates fit into their tiles and the chart at both widths")


def failures_show_their_reason(dashboard: Dashboard, gateway: str, origin: str):
    page = dashboard.page
    dashboard.submit(f"{origin}/none.jpg", {})
    dashboard.status("Failed, not_found: ")
    dashboard.open("failures")
    rows = page_part(dashboard, "#failures li").filter(has_text="none.jpg")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("not_found")
    expect(rows.first).to_contain_text("404")
    rows.first.get_by_role("button", name="Try again").click()
    expect(rows).to_have_count(2)
    post(gateway, [{"source": f"{origin}/others.jpg", "width": 40}])
    others = page_part(dashboard, "#failures li").filter(has_text="others.jpg")
    expect(others).to_have_count(1)
    others.get_by_role("button", name="Copy to form").click()
    expect(page_part(dashboard, "#view-overview")).to_be_visible()
    expect(page.locator("#source")).to_have_value(f"{origin}/others.jpg")
    passed("a failure shows its code and message; own jobs can be retried, other sources copied to the form")


def failures_are_grouped(dashboard: Dashboard, gateway: str, origin: str):
    page = dashboard.page
    host = origin.removeprefix("http://").split("/")[0]
    post(gateway, [{"source": f"{origin}/grouped-{index}.jpg", "width": 40} for index in range(4)])
    dashboard.open("failures")
    group = page.locator("#failure-groups tbody tr").filter(has_text="not_found").filter(has_text=host)
    expect(group).to_have_count(1)
    total = lambda: int(group.locator("td").nth(1).inner_text().replace(",", ""))
    end = time.monotonic() + 60
    while total() < 4 and time.monotonic() < end:
        page.wait_for_timeout(100)
    trend = group.locator("svg").get_attribute("aria-label")
    assert sum(map(int, trend.split(": ")[1].split(", "))) == total() >= 4, trend
    group.get_by_role("link", name="not_found").click()
    expect(page.locator("#view-jobs")).to_be_visible()
    expect(page.locator("#job-state")).to_have_value("failed")
    expect(page.locator("#job-host")).to_have_value(host)
    rows = page.locator("#jobs tbody tr")
    expect(rows.filter(has_text="grouped-3.jpg")).to_have_count(1)
    assert rows.filter(has_text="not_found").count() == rows.count()
    dashboard.open("overview")
    expect(page.locator("#top-failures tbody tr").first).to_be_visible()
    passed("failures are grouped by code and host with their trend, and a group leads to its jobs")


def jobs_are_found(dashboard: Dashboard, gateway: str, origin: str):
    page = dashboard.page
    post(gateway, [{"id": "Found-One", "source": f"{origin}/rocket.jpg", "width": 33},
                   {"id": "found-two", "source": f"{origin}/missing-two.jpg", "width": 33}])
    await_state(gateway, "Found-One", "ready")
    await_state(gateway, "found-two", "failed")
    rows = page.locator("#jobs tbody tr")
    search = page.get_by_role("searchbox")

    def found(text: str, *ids: str):
        search.fill(text)
        search.press("Enter")
        expect(page.locator("#view-jobs")).to_be_visible()
        expect(rows).to_have_count(len(ids))
        for id in ids:
            expect(rows.filter(has_text=id)).to_have_count(1)

    dashboard.open("overview")
    found("found-one", "Found-One")
    found("MISSING-two", "found-two")
    found("found-", "Found-One", "found-two")
    page.locator("#job-state").select_option("failed")
    expect(rows).to_have_count(1)
    page.locator("#job-code").select_option("timeout")
    expect(page.locator("#jobs-note")).to_contain_text("No jobs match")
    page.locator("#job-reset").click()
    expect(search).to_have_value("")
    search.fill("not_found")
    search.press("Enter")
    expect(rows.filter(has_text="found-two")).to_have_count(1)
    # The address of a search can be shared and reloaded.
    dashboard.open("jobs?q=found-two")
    page.reload()
    dashboard.live()
    expect(rows).to_have_count(1)
    expect(search).to_have_value("found-two")
    # A job before the time range is found as well.
    page.route("**/v1/history/jobs?*seconds=*", lambda route: route.fulfill(json={"jobs": [], "more": False}))
    search.fill("found-one")
    search.press("Enter")
    expect(page.locator("#jobs-note")).to_have_text("1 job before this time range")
    expect(rows.filter(has_text="Found-One")).to_have_count(1)
    page.unroute("**/v1/history/jobs?*seconds=*")
    search.fill("no such job")
    search.press("Enter")
    expect(page.locator("#jobs-note")).to_contain_text("No jobs match")
    passed("jobs are found by id, source and code, filtered by state, and a search has an address")


def shell(command: str, gateway: str) -> str:
    """Runs a command of the page in a POSIX shell, with `halcyon` in the path."""
    environment = os.environ | {"API_KEY": "", "PATH": f"{Path(os.environ['HALCYON_EXECUTABLE']).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, (command, done)
    return done.stdout + done.stderr


def job_has_a_page(dashboard: Dashboard, gateway: str, origin: str):
    page = dashboard.page
    post(gateway, [{"id": "its page/1", "source": f"{origin}/hubble.jpg", "width": 44, "height": 33, "altText": "It's 'Hubble'",
                    "tenant": "museum", "metadata": {"wall": 7}, "processors": ["blackWhite"]}])
    await_state(gateway, "its%20page%2F1", "ready")
    dashboard.open("jobs?q=its page")
    page.locator("#jobs tbody").get_by_role("link", name="its page/1").click()
    parts = page.locator("#job-parts")
    expect(page.locator("#job-title")).to_have_text("its page/1")
    expect(page.locator("#job-status")).to_contain_text("ready")
    facts = parts.locator(".facts")
    event = get(gateway, "/v1/history/jobs/its%20page%2F1")["events"][-1]
    for text in [f"{origin}/hubble.jpg", "museum", event["data"]["key"], '{"wall":7}', "It's 'Hubble'", "Origin"]:
        expect(facts).to_contain_text(text)
    expect(parts.locator(".images img")).to_have_attribute("alt", "It's 'Hubble'")
    expect(parts.locator(".waterfall")).to_contain_text("encode")
    for text in ["started", "ready"]:
        expect(parts.locator("table").first).to_contain_text(text)
    expect(parts.get_by_role("region", name="halcyon.image.ready")).to_contain_text('"sha256"')
    expect(parts.get_by_role("region", name="Record")).to_contain_text('"tenant": "museum"')
    # The commands submit the same job: the result has the same key.
    for name in ["Command line", "HTTP"]:
        output = shell(parts.get_by_role("region", name=name, exact=True).text_content(), gateway)
        assert event["data"]["key"] in output or "%7B" in output and event["data"]["key"].split(":")[-1] in output, (name, output)
    parts.get_by_role("button", name="Copy to form").click()
    expect(page.locator("#width")).to_have_value("44")
    assert json.loads(page.locator("#more").input_value())["processors"] == ["blackWhite"]
    dashboard.open("job/never-submitted")
    expect(page.locator("#job-status")).to_contain_text("This job is unknown")
    expect(parts).to_be_empty()
    passed("a job has a page with fields, stages, events, picture, key and message; its commands submit the same job again")


def job_page_follows_the_job(dashboard: Dashboard, gateway: str):
    """The page of a job that waits for its start, which is cancelled."""
    page = dashboard.page
    post(gateway, [{"id": "follow-me", "source": "initials:FM", "width": 21, "notBefore": 3600}])
    dashboard.open("job/follow-me")
    expect(page.locator("#job-status")).to_contain_text("accepted")
    page.get_by_role("button", name="Cancel job").click()
    dashboard.confirm("follow-me", accept=False)
    expect(page.locator("#job-status")).to_contain_text("accepted")
    page.get_by_role("button", name="Cancel job").click()
    dashboard.confirm("follow-me")
    expect(page.locator("#job-notice")).to_contain_text("The cancellation was sent")
    expect(page.locator("#job-status")).to_contain_text("cancelled")
    expect(page.get_by_role("button", name="Cancel job")).to_have_count(0)
    passed("the page of a job follows its state, and cancels the job after a confirmation")


def rejects_invalid_jobs(dashboard: Dashboard):
    dashboard.page.locator("#more").fill("[1]")
    dashboard.page.get_by_role("button", name="Submit").click()
    dashboard.status("Not submitted: More fields: expected an object")
    dashboard.submit("initials:HB", {"width": -1})
    dashboard.status("Not submitted: ")
    passed("an invalid job is rejected with the reason")


def escapes_hostile_text(dashboard: Dashboard, gateway: str, origin: str):
    page = dashboard.page
    id = f"hostile {HOSTILE}"
    post(gateway, [
        {"id": "hostile-ready", "source": "initials:XS", "width": 90, "altText": HOSTILE, "metadata": {"note": HOSTILE}},
        {"id": id, "source": f"{origin}/{HOSTILE.replace(' ', '%20')}", "width": 90},
    ])
    dashboard.open("overview")
    expect(page_part(dashboard, ".gallery img").first).to_have_attribute("alt", HOSTILE)
    dashboard.open("failures")
    expect(page_part(dashboard, "#failures li").first).to_contain_text("<script>window.stolen=1</script>")
    search = page.get_by_role("searchbox")
    search.fill(HOSTILE)
    search.press("Enter")
    expect(page.locator("#jobs tbody tr")).to_have_count(1)
    page.locator("#jobs tbody tr a").first.click()
    expect(page.locator("#job-title")).to_have_text(id)
    expect(page.locator("#job-parts")).to_contain_text("not_found")
    shell(page.get_by_role("region", name="HTTP", exact=True).text_content(), gateway)
    dashboard.open("job/hostile-ready")
    expect(page.locator("#job-parts .images img")).to_have_attribute("alt", HOSTILE)
    shell(page.get_by_role("region", name="HTTP", exact=True).text_content(), gateway)
    dashboard.open("job/" + HOSTILE.replace("%", "%25"))
    expect(page.locator("#job-status")).to_contain_text("This job is unknown")
    assert page.evaluate("window.stolen") is None
    assert page.locator("main script, main [onerror]").count() == 0
    passed("hostile ids, alternative texts, sources and searches are escaped in every view and in the commands")


def page_is_accessible(dashboard: Dashboard, name: str, prints: bool = True):
    results = Axe().run(dashboard.page)
    found = [f"{item['impact']} {item['id']}: {item['help']} {[node['target'] for node in item['nodes']][:3]}"
             for item in results.response["violations"]]
    assert not found, f"{name}: " + "\n".join(found)
    if prints:
        passed(f"axe finds no violations ({name}); {len(results.response['passes'])} rules passed")


def keyboard_reaches_every_control(dashboard: Dashboard):
    page = dashboard.page
    dashboard.open("overview")
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    for name in ["Skip to the content", "q", "range", "pause", "keys", "Dead letters", "source", "width", "height", "contentMode",
                 "format", "Submit"]:
        assert name in reached, (name, reached)
    page.locator("#source").fill("initials:KB")
    page.locator("#more").fill("")
    page.locator("#source").press("Enter")
    dashboard.status("Ready")
    expect(page.locator(".gallery li").first).to_contain_text("initials:KB")
    page.evaluate("document.activeElement.blur()")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    expect(page.locator("#view-overview")).to_be_visible()
    passed("the keyboard reaches every control, and Enter submits")


def shortcuts_work(dashboard: Dashboard):
    page = dashboard.page
    keys = page.keyboard
    search = page.get_by_role("searchbox")
    dashboard.open("overview")
    page.evaluate("document.activeElement.blur()")
    keys.press("/")
    expect(search).to_be_focused()
    # In a field, the same keys are text.
    search.fill("")
    keys.type("a/2?p")
    expect(search).to_have_value("a/2?p")
    expect(page.locator("#help")).to_be_hidden()
    keys.press("Escape")
    expect(search).not_to_be_focused()
    keys.press("2")
    expect(page.locator("#view-jobs")).to_be_visible()
    expect(page.locator("nav a[aria-current]")).to_have_text("Jobs")
    dashboard.open("jobs")
    links = page.locator("#jobs tbody a.row")
    expect(links.nth(1)).to_be_visible()
    page.locator("#main").focus()
    keys.press("ArrowDown")
    expect(links.first).to_be_focused()
    keys.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    keys.press("ArrowUp")
    name = links.first.get_attribute("title")
    keys.press("Enter")
    expect(page.locator("#job-title")).to_have_text(name)
    keys.press("Escape")
    expect(page.locator("#view-jobs")).to_be_visible()
    keys.press("?")
    expect(page.locator("#help")).to_be_visible()
    page_is_accessible(dashboard, "help")
    page.get_by_label("Use the single keys").uncheck()
    keys.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.locator("#main").focus()
    keys.press("5")
    keys.press("?")
    expect(page.locator("#view-jobs")).to_be_visible()
    expect(page.locator("#help")).to_be_hidden()
    page.locator("#keys").click()
    page.get_by_label("Use the single keys").check()
    page.get_by_role("button", name="Close").click()
    keys.press("5")
    expect(page.locator("#view-workers")).to_be_visible()
    page.go_back()
    expect(page.locator("#view-jobs")).to_be_visible()
    passed("keys focus the search, open views, move in lists, open and close jobs and the help, and can be switched off")


def pause_stops_updates(dashboard: Dashboard, gateway: str):
    page = dashboard.page
    dashboard.open("overview")
    expect(page.locator("#connection")).to_have_text("Live")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#connection")).to_have_text("Paused")
    keys = page.locator(".gallery li").evaluate_all("(items) => items.map((item) => item.textContent)")
    heard = page.locator("#heard").inner_text()
    post(gateway, [{"id": "while-paused", "source": "initials:PA", "width": 61}])
    dashboard.submit("initials:PB", {"width": 62})
    dashboard.status("Ready")
    await_state(gateway, "while-paused", "ready")
    page.wait_for_timeout(2500)
    assert page.locator(".gallery li").evaluate_all("(items) => items.map((item) => item.textContent)") == keys
    assert page.locator("#heard").inner_text() == heard
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#connection")).to_have_text("Live")
    expect(page.locator("#heard")).to_have_text(f"{int(heard.replace(',', '')) + 2:,}")
    expect(page.locator(".gallery li").filter(has_text="initials:PA")).to_have_count(1)
    passed("while it is paused, the page says so and does not change")


@contextlib.contextmanager
def extra_worker():
    """Runs `halcyon worker` on the same cluster within the context."""
    process = subprocess.Popen([os.environ["HALCYON_EXECUTABLE"], "worker"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def late_origin(port: int, picture: str):
    """Runs an origin with one image within the context."""
    with urllib.request.urlopen(picture) as answer:
        body = answer.read()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "image/jpeg")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


def shows_lanes_and_workers(dashboard: Dashboard, gateway: str):
    """A worker starts and stops."""
    dashboard.open("workers")
    rows = page_part(dashboard, "#workers tbody tr")
    expect(rows).to_have_count(1)
    # The jobs of the checks before: some were finished, and the memory is known.
    cells = rows.first.locator("td")
    expect(cells.nth(5)).to_have_text(re.compile("^[1-9]"))
    expect(cells.nth(6)).to_have_text(re.compile(r"^[1-9].*\s[MG]B$"))
    for lane in ["high", "normal", "low", "retries"]:
        expect(page_part(dashboard, f"#lag-{lane}")).to_have_text("0")
    expect(page_part(dashboard, "#lanes tbody tr")).to_have_count(3)
    with extra_worker() as pid:
        expect(rows).to_have_count(2)
        expect(rows.filter(has_text=str(pid))).to_have_count(1)
    expect(rows).to_have_count(1)
    expect(rows.filter(has_text=str(pid))).to_have_count(0)
    # The rebalance takes a while. Until then, no job is processed.
    post(gateway, [{"id": "after-the-worker", "source": "initials:W", "width": 16}])
    end, state = time.monotonic() + 300, ""
    while state != "ready" and time.monotonic() < end:
        with urllib.request.urlopen(f"{gateway}/v1/jobs/after-the-worker?wait=10") as answer:
            state = json.load(answer)["state"]
    assert state == "ready", f"expected the remaining worker to process the job, found {state}"
    passed("lanes show their lag; a worker appears with its throughput and memory, and disappears when it has stopped")


def pauses_lanes_and_tenants(dashboard: Dashboard, gateway: str):
    page = dashboard.page
    dashboard.open("workers")
    lane = page.locator("#lanes tbody tr").filter(has_text="Low")
    lane.get_by_role("button", name="Pause").click()
    dashboard.confirm("Pause the lane low?")
    expect(lane).to_contain_text("paused")
    assert [entry["lane"] for entry in get(gateway, "/v1/paused")["lanes"]] == ["low"]
    lane.get_by_role("button", name="Resume").click()
    expect(lane).to_contain_text("running")
    # A tenant is listed while it has jobs in flight, and while it is paused.
    urllib.request.urlopen(urllib.request.Request(f"{gateway}/v1/paused/tenants/zoo", method="PUT")).close()
    tenant = page.locator("#tenants tbody tr").filter(has_text="zoo")
    expect(tenant).to_contain_text("paused")
    page_is_accessible(dashboard, "workers")
    tenant.get_by_role("button", name="Resume").click()
    expect(tenant).to_have_count(0)
    assert get(gateway, "/v1/paused") == {"lanes": [], "tenants": []}
    passed("lanes and tenants are paused after a confirmation, and resumed")


def shows_running_batches(dashboard: Dashboard, gateway: str, origin: str):
    """A batch of which one job waits for its start, until it is cancelled."""
    dashboard.open("batches")
    part = page_part(dashboard, "#batches")
    expect(part).to_contain_text("No batches are running.")
    jobs = [{"source": f"{origin}/coffee.jpg", "width": 77}, {"source": "initials:BA", "width": 77, "notBefore": 3600}]
    body = "\n".join(map(json.dumps, jobs)).encode()
    request = urllib.request.Request(f"{gateway}/v1/batches?id=seen", body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request) as answer:
        batch = json.load(answer)["id"]
    row = page_part(dashboard, "#batches tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("50 %, 1 of 2")
    assert row.locator("progress").evaluate("(bar) => bar.value") == 0.5
    page_is_accessible(dashboard, "a running batch")
    row.get_by_role("button", name="Cancel").click()
    dashboard.confirm(batch, accept=False)
    expect(row).to_have_count(1)
    row.get_by_role("button", name="Cancel").click()
    dashboard.confirm(batch)
    expect(row).to_have_count(0)
    expect(part).to_contain_text("No batches are running.")
    # A completed batch is found by its state, with its failures.
    body = json.dumps({"source": f"{origin}/batch-gone.jpg", "width": 77}).encode()
    request = urllib.request.Request(f"{gateway}/v1/batches?id=broken", body, {"Content-Type": "application/x-ndjson"})
    urllib.request.urlopen(request).close()
    dashboard.page.locator("#batch-state").select_option("completed")
    broken = row.filter(has_text="broken")
    expect(broken).to_contain_text("100 %, 1 of 1")
    broken.get_by_role("button", name="Failures").click()
    expect(part.locator("#batch-detail")).to_contain_text("not_found")
    passed("a batch is shown with its progress until it is cancelled, and a completed one with its failures")


def retries_dead_letters(dashboard: Dashboard, gateway: str, origin: str):
    page = dashboard.page
    port = reserve_port()
    post(gateway, [{"id": "dead-letter", "source": f"http://127.0.0.1:{port}/late.jpg", "width": 40, "altText": "late",
                    "cache": {"reload": True}}])
    dashboard.open("dead")
    letters = page_part(dashboard, "#dead li")
    expect(letters).to_have_count(1)
    expect(letters.first).to_contain_text("connect_error")
    expect(page_part(dashboard, "#dead-count")).to_have_text("1")
    letters.first.get_by_text("Payload").click()
    expect(letters.first.get_by_role("region", name="Message")).to_contain_text('"altText": "late"')
    expect(letters.first.get_by_role("region", name="Attempts")).to_contain_text("connect_error")
    page_is_accessible(dashboard, "a dead letter")
    # Its job's page shows the attempts.
    letters.first.get_by_role("link", name="dead-letter").click()
    timeline = page.locator("#job-parts table").first
    expect(timeline).to_contain_text("Attempt 1 failed, connect_error")
    expect(timeline).to_contain_text("dead letter")
    page_is_accessible(dashboard, "a failed job")
    page.go_back()
    expect(letters).to_have_count(1)
    with late_origin(port, f"{origin}/coffee.jpg"):
        letters.first.get_by_role("button", name="Replay").click()
        expect(page_part(dashboard, "#dead-status")).to_have_text("1 dead letter replayed.")
        dashboard.open("overview")
        expect(page_part(dashboard, ".gallery img").first).to_have_attribute("alt", "late")
    expect(page_part(dashboard, "#dead-count")).to_have_text("0")
    dashboard.open("dead")
    expect(letters).to_have_count(0)
    passed("a dead letter is listed with its payload and attempts, replayed and removed; its job becomes ready")


def settles_dead_letters_in_bulk(dashboard: Dashboard, gateway: str):
    page = dashboard.page
    port = reserve_port()
    jobs = [{"id": f"bulk-{index}", "source": f"http://127.0.0.1:{port}/{index}.jpg", "width": 40, "tenant": "zoo" if index < 3 else "acme",
             "altText": HOSTILE} for index in range(7)]
    post(gateway, jobs)
    dashboard.open("dead")
    letters = page.locator("#dead ul.rows > li")
    status = page.locator("#dead-status")
    expect(letters).to_have_count(7)
    page.locator("#dead-tenant").fill("zoo")
    page.locator("#dead-tenant").press("Enter")
    page.locator("#dead-tenant").blur()
    expect(letters).to_have_count(3)
    # Selected ones.
    expect(page.locator("#dead-discard")).to_be_disabled()
    letters.first.get_by_role("checkbox").check()
    expect(page.locator("#dead-selection")).to_have_text("1 selected")
    page.locator("#dead-discard").click()
    dashboard.confirm("Discard 1 dead letter?", accept=False)
    expect(letters).to_have_count(3)
    page.locator("#dead-discard").click()
    dashboard.confirm("cannot be undone")
    expect(status).to_have_text("1 dead letter discarded.")
    expect(letters).to_have_count(2)
    # All that match: the others stay.
    page.locator("#dead-discard-all").click()
    dashboard.confirm("tenant zoo")
    expect(status).to_have_text("2 dead letters discarded.")
    page.locator("#dead-reset").click()
    expect(letters).to_have_count(4)
    page.locator("#dead-all").check()
    expect(page.locator("#dead-selection")).to_have_text("4 selected")
    page.locator("#dead-replay").click()
    dashboard.confirm("Replay 4 dead letters?")
    expect(status).to_have_text("4 dead letters replayed.")
    # They fail again. The list may still show the former ones.
    wait("the jobs have failed again", lambda: [letter.get("replays") for letter in get(gateway, "/v1/dead")["letters"]] == [1] * 4)
    expect(letters).to_have_count(4)
    page.locator("#dead-discard-all").click()
    dashboard.confirm("Discard all dead letters?")
    expect(letters).to_have_count(0)
    expect(page.locator("#dead-count")).to_have_text("0")
    assert get(gateway, "/v1/dead")["open"] == 0 and page.evaluate("window.stolen") is None
    passed("dead letters are filtered, and replayed or discarded in bulk after a confirmation")


def purges_and_cancels(dashboard: Dashboard, gateway: str):
    page = dashboard.page
    post(gateway, [{"id": "to-purge", "source": "initials:PU", "width": 37, "tags": ["spring"]},
                   {"id": "to-cancel", "source": "initials:CA", "width": 37, "notBefore": 3600, "tags": ["summer"]}])
    await_state(gateway, "to-purge", "ready")
    dashboard.open("actions")
    form = page.locator("#purge-form")
    form.get_by_role("button").click()
    expect(page.locator("#purge-status")).to_have_text("Not purged: enter a source")
    page.locator("#purge-kind").select_option("tag")
    page.locator("#purge-value").fill("spring")
    form.get_by_role("button").click()
    dashboard.confirm("The results of the tag spring", accept=False)
    form.get_by_role("button").click()
    dashboard.confirm("The results of the tag spring")
    expect(page.locator("#purge-status")).to_have_text("Purged: 1 result.")
    page.locator("#cancel-kind").select_option("tag")
    page.locator("#cancel-value").fill("summer")
    page.locator("#cancel-form").get_by_role("button").click()
    dashboard.confirm("with the tag summer")
    expect(page.locator("#cancel-status")).to_contain_text("The cancellation was sent")
    await_state(gateway, "to-cancel", "cancelled")
    page_is_accessible(dashboard, "actions")
    # The page of a job leads to the form.
    dashboard.open("job/to-purge")
    page.get_by_role("link", name="Purge its source").click()
    expect(page.locator("#purge-value")).to_have_value("initials:PU")
    passed("results are purged and jobs cancelled with forms, after a confirmation")


def links_lead_to_documents(dashboard: Dashboard, gateway: str):
    addresses = page_part(dashboard, "footer a:not([hidden])").evaluate_all("(links) => links.map((link) => link.href)")
    assert [address.removeprefix(gateway) for address in addresses] == ["/openapi.yaml", "/asyncapi.yaml", "/metrics", "/readyz"], addresses
    for address in addresses:
        with urllib.request.urlopen(address) as answer:
            assert answer.status == 200
    passed("the page links to the API descriptions, metrics and readiness")


def fits_all_themes_and_widths(browser: Browser, gateway: str, origin: str, folder: Path | None):
    """Checks both themes at two widths. With a folder, takes screenshots after 15 rounds of jobs."""
    looks = {}
    for theme in ["light", "dark"]:
        for name, width in [("wide", 1280), ("narrow", 390)]:
            looks[f"{theme}-{name}"] = Dashboard(
                browser, gateway, color_scheme=theme, reduced_motion="reduce", viewport={"width": width, "height": 900})
    for dashboard in looks.values():
        dashboard.live()
    ended = 0
    for round in range(15 if folder else 2):
        jobs = [{"source": f"{origin}/{name}.jpg", "width": 320 + 16 * (round % 2), "height": 240, "altText": name}
                for name in ["astronaut", "chelsea", "coffee", "hubble", "rocket"][:2 + round % 4]]
        for index, job in enumerate(jobs):
            job["tenant"] = ["museum", "zoo", "shop"][index % 3]
        jobs += jobs[:2] + [{"source": "initials:HB", "width": 200}]
        if round % 8 == 1:
            jobs += [{"source": f"{origin}/none.jpg", "width": 100}, {"source": f"{origin}/README.md", "width": 100}]
        ended += len(jobs)
        post(gateway, jobs)
        if folder:
            time.sleep(2)
    for name, dashboard in looks.items():
        # One at a time in the foreground, because pages in the background are suspended.
        dashboard.page.bring_to_front()
        more = {"altText": "A cup of coffee"} if "light" in name else {"processors": [{"roundCorner": {"radius": 40}}]}
        dashboard.submit(f"{origin}/coffee.jpg", more)
        ended += 1
        dashboard.status("Ready")
        expect(page_part(dashboard, "#heard")).to_have_text(f"{ended}")
        expect(page_part(dashboard, "#top-failures tbody tr").first).to_be_visible()
        expect(page_part(dashboard, ".gallery .picture:empty")).to_have_count(0)
        dashboard.page.evaluate("Promise.all([...document.images].map((image) => image.decode()))")
        failed = get(gateway, "/v1/history/jobs?state=failed&limit=1")["jobs"][0]["job"]
        ready = get(gateway, "/v1/history/jobs?state=ready&q=coffee&limit=1")["jobs"][0]["job"]
        views = {
            "overview": "overview", "jobs": "jobs", "job": f"job/{ready}", "failed-job": f"job/{failed}", "failures": "failures", "dead": "dead",
            "workers": "workers", "batches": "batches?state=all", "actions": "actions",
        }
        for view, address in views.items():
            dashboard.open(address)
            page = dashboard.page
            page.wait_for_timeout(700)
            page_is_accessible(dashboard, f"{view}, {name}", prints=False)
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert over <= 0, f"{view}, {name}: {over} px too wide"
            height = page.evaluate("document.documentElement.scrollHeight")
            assert view != "overview" or height < 3200, f"{view}, {name}: {height} px high"
            if folder:
                clip = {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": min(2000, height)}
                stem = "dashboard" if view == "overview" else f"view-{view}"
                page.screenshot(path=str(folder / f"{stem}-{name}.png"), full_page=True, clip=clip)
        dashboard.close()
    passed("all views fit and are accessible in both themes at both widths")


def memory_is_bounded(browser: Browser, gateway: str, origin: str):
    """The memory of the page does not grow with 10,000 events."""
    dashboard = Dashboard(browser, gateway).live()
    page = dashboard.page
    session = dashboard.context.new_cdp_session(page)

    def heap() -> int:
        session.send("HeapProfiler.collectGarbage")
        return session.send("Runtime.getHeapUsage")["usedSize"]

    def burst(jobs: int, before: int):
        # About sixty results, and every tenth job fails. Sent in parts, so that they do not delay each other.
        for start in range(0, jobs, 500):
            post(gateway, [
                {"source": f"{origin}/gone-{index % 7}.jpg" if index % 10 == 9 else f"initials:{chr(65 + index % 20)}",
                 "width": 64 + index % 3} for index in range(start, start + 500)])
        expect(page.locator("#heard")).to_have_text(f"{before + jobs:,}")
        expect(page.locator(".gallery img")).to_have_count(12)

    dashboard.open("overview")
    burst(1000, 0)
    before = heap()
    burst(9000, 1000)
    after = heap()
    elements = page.evaluate("document.querySelectorAll('*').length")
    held = page.evaluate("window.held")
    assert page.locator(".gallery li").count() == 12
    assert elements < 1600, elements
    assert held <= 14, held
    assert after < before + 2_000_000, (before, after)
    for view, rows, most in [("overview", ".gallery li", 12), ("failures", "#failures li", 20), ("jobs", "#jobs tbody tr", 100)]:
        for width in [1280, 390]:
            page.set_viewport_size({"width": width, "height": 900})
            dashboard.open(view)
            expect(page.locator(rows)).to_have_count(most)
            height = page.evaluate("document.documentElement.scrollHeight")
            assert height < {"overview": 3200, "failures": 4000, "jobs": 4000}[view], (view, width, height)
    dashboard.close()
    passed(f"after 10,000 events there are {elements} elements, {held} pictures and {after / 1e6:.1f} MB of heap "
           f"({before / 1e6:.1f} MB after the first 1,000)")


def asks_for_a_key(browser: Browser):
    with separate_gateway(reserve_port(), keys_page=KEY) as gateway:
        await_ready(gateway)
        dashboard = Dashboard(browser, gateway)
        page = dashboard.page
        error = page.locator("#key-error")
        expect(page.locator("#connection")).to_have_text("API key required")
        expect(page.get_by_label("API key")).to_be_focused()
        expect(error).to_be_hidden()
        page_is_accessible(dashboard, "asking for a key")
        for key in ["wrong-key-of-this-length", KEY]:
            page.get_by_label("API key").fill(key)
            page.get_by_label("API key").press("Enter")
            if key != KEY:
                expect(error).to_have_text("The gateway does not accept this key.")
                page_is_accessible(dashboard, "a wrong key")
        dashboard.live()
        expect(page.get_by_label("API key")).to_be_hidden()
        expect(page.locator("#ready")).not_to_have_text("–")
        dashboard.submit("initials:KE", {})
        dashboard.status("Ready")
        expect(page.locator("#trial-result img")).to_have_count(1)
        page.reload()
        dashboard.live()
        assert page.evaluate("localStorage.length") == 0 and KEY not in page.url
        dashboard.close()
    passed("the page asks for a key, refuses a wrong one with a message, sends it as a header, and keeps it for the tab only")


def links_to_documentation(browser: Browser):
    with separate_gateway(reserve_port(), documentationURL="https://wiki.example.org/runbook") as gateway:
        await_ready(gateway)
        dashboard = Dashboard(browser, gateway).live()
        link = dashboard.page.get_by_role("link", name="Documentation")
        expect(link).to_have_attribute("href", "https://wiki.example.org/runbook")
        dashboard.close()
    passed("the page links to the documentation of a setting")


def respects_scopes(browser: Browser):
    """What a key may not do is disabled, with the reason. The gateway refuses it too."""
    for scopes in ["read", "submit"]:
        with separate_gateway(reserve_port(), keys_page=KEY, scopes_page=scopes) as gateway:
            await_ready(gateway)
            dashboard = Dashboard(browser, gateway)
            page = dashboard.page
            page.get_by_label("API key").fill(KEY)
            page.get_by_label("API key").press("Enter")
            if scopes == "submit":
                expect(page.locator("#key-error")).to_contain_text("does not have the scope read")
                dashboard.close()
                continue
            dashboard.live()
            expect(page.locator("#ready")).not_to_have_text("–")
            submit = page.get_by_role("button", name="Submit")
            expect(submit).to_be_disabled()
            expect(page.locator("#trial-reason")).to_have_text("This needs a key with the scope submit.")
            dashboard.open("dead")
            expect(page.locator("#dead-note")).to_contain_text("use a key with the scope admin")
            expect(page.locator("#dead-bar")).to_be_hidden()
            dashboard.open("actions")
            for name in ["purge", "cancel"]:
                expect(page.locator(f"#{name}-reason")).to_have_text("This needs a key with the scope admin.")
                expect(page.locator(f"#{name}-form").get_by_role("button")).to_be_disabled()
            page_is_accessible(dashboard, "a key that may only read")
            dashboard.open("workers")
            pause = page.locator("#lanes").get_by_role("button").first
            expect(pause).to_be_disabled()
            expect(pause).to_have_attribute("title", "This needs a key with the scope admin.")
            dashboard.open("jobs")
            expect(page.locator("#job-state option[value=flight]")).to_be_disabled()
            status = page.evaluate("""async () => {
                const { purge } = await import("/dashboard/api.js");
                return purge({ tag: "x" }).then(() => 200, (error) => error.status);
            }""")
            assert status == 403, status
            dashboard.close()
    passed("what a key may not do is disabled with the reason, and the gateway refuses it")


def reconnects_without_missing_events(browser: Browser, gateway: str):
    """A gateway stops and another takes its place: events in between are not missed."""
    port = reserve_port()
    with separate_gateway(port) as own:
        await_ready(own)
        dashboard = Dashboard(browser, own).live()
        post(own, [{"source": "initials:A", "width": 51}])
        expect(page_part(dashboard, "#heard")).to_have_text("1")
    expect(page_part(dashboard, "#connection")).to_contain_text("Not connected")
    post(gateway, [{"source": f"initials:{letter}", "width": 52} for letter in "BCD"])
    with separate_gateway(port):
        dashboard.live()
        expect(page_part(dashboard, "#heard")).to_have_text("4")
        dashboard.close()
    passed("the page shows that it is not connected, reconnects, and misses no events")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway")
    parser.add_argument("origin", help="serves the sample photographs")
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    gateway, origin = arguments.gateway, arguments.origin
    # Pages have a timeout of their own, which does not apply to expectations.
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        # Containers have no user namespaces for the sandbox; the pages are our own.
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page_has_policy_and_etag(gateway)
        dashboard = Dashboard(browser, gateway).live()
        parses_streams_and_formats(dashboard)
        form_submits_jobs(dashboard, origin)
        figures_come_from_the_gateway(dashboard, gateway)
        large_figures_fit(browser, gateway)
        failures_show_their_reason(dashboard, gateway, origin)
        failures_are_grouped(dashboard, gateway, origin)
        rejects_invalid_jobs(dashboard)
        jobs_are_found(dashboard, gateway, origin)
        job_has_a_page(dashboard, gateway, origin)
        job_page_follows_the_job(dashboard, gateway)
        escapes_hostile_text(dashboard, gateway, origin)
        keyboard_reaches_every_control(dashboard)
        shortcuts_work(dashboard)
        pause_stops_updates(dashboard, gateway)
        shows_running_batches(dashboard, gateway, origin)
        purges_and_cancels(dashboard, gateway)
        links_lead_to_documents(dashboard, gateway)
        # Before a worker stops: the rebalance of the embedded broker is slow, and jobs wait meanwhile.
        retries_dead_letters(dashboard, gateway, origin)
        settles_dead_letters_in_bulk(dashboard, gateway)
        pauses_lanes_and_tenants(dashboard, gateway)
        fits_all_themes_and_widths(browser, gateway, origin, arguments.screenshots)
        dashboard.page.bring_to_front()
        shows_lanes_and_workers(dashboard, gateway)
        dashboard.close()
        reconnects_without_missing_events(browser, gateway)
        asks_for_a_key(browser)
        respects_scopes(browser)
        links_to_documentation(browser)
        memory_is_bounded(browser, gateway, origin)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
