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
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

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

    def __init__(self, browser: Browser, gateway: str, **options):
        self.context = browser.new_context(**options)
        self.context.add_init_script(COUNTING)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(TIMEOUT)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._record_error)
        self.page.on("dialog", lambda dialog: (self.errors.append("a dialog"), dialog.dismiss()))
        self.page.goto(gateway + "/", wait_until="load")

    def _record_error(self, message):
        # Some checks cause refused or lost connections.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def live(self):
        expect(self.page.locator("#connection")).to_have_text("Live", timeout=TIMEOUT)
        return self

    def submit(self, source: str, more: dict | None = None):
        page = self.page
        page.get_by_label("Source").fill(source)
        if more is not None:
            page.locator("details").evaluate("(details) => { details.open = true; }")
            page.locator("#more").fill(json.dumps(more))
        page.get_by_role("button", name="Submit").click()

    def status(self, text: str):
        expect(page_part(self, "#trial-status")).to_contain_text(text, timeout=TIMEOUT)

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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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


def computes_percentiles_and_parses_streams(dashboard: Dashboard):
    """Percentiles and shares of known numbers, and a stream split at any position."""
    found = dashboard.page.evaluate("""async () => {
        const { Measures } = await import("/dashboard/measures.js");
        const { EventParser } = await import("/dashboard/stream.js");
        const measures = new Measures();
        const add = (total, age, type = "ready") => measures.add({
            type: `halcyon.image.${type}`, time: new Date(Date.now() - age).toISOString(),
            data: { origin: total % 2 ? "memory" : "network", timings: { total } } });
        for (let total = 1; total <= 1000; total += 1) add(total, 1000);
        add(1, 301_000);
        add(1, -60_000);
        add(1, 0, "failed");
        const { ready, failed, origins, percentile } = measures.summary();
        const text = ":\\r\\n\\r\\nid: 7\\r\\ndata: a\\r\\ndata:b\\r\\n\\r\\nid: 8\\n\\nevent: gap\\rdata: {}\\r\\r";
        const heard = [];
        for (let cut = 0; cut <= text.length; cut += 1) {
            const parser = new EventParser();
            heard.push(JSON.stringify([
                [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut)), ...parser.push("")], parser.lastId]));
        }
        return { ready, failed, origins, parts: [0.5, 0.95, 0.99].map(percentile), heard: [...new Set(heard)] };
    }""")
    assert (found["ready"], found["failed"]) == (1001, 1), found
    assert found["origins"] == {"memory": 501, "store": 0, "network": 500, "coalesced": 0, "source-cache": 0}, found
    for part, true in zip(found["parts"], [500, 950, 990]):
        assert abs(part - true) <= 0.026 * true, found
    assert found["heard"] == ['[[{"type":"message","data":"a\\nb"},{"type":"gap","data":"{}"}],"8"]'], found["heard"]
    passed("percentiles and shares are correct, and a stream is parsed in any pieces")


def form_submits_jobs(dashboard: Dashboard, origin: str):
    dashboard.submit(f"{origin}/chelsea.jpg", {"altText": "A cat"})
    dashboard.status("Ready, from network.")
    picture = page_part(dashboard, "#trial-result img")
    expect(picture).to_have_attribute("alt", "A cat")
    size = picture.evaluate("async (image) => { await image.decode(); return [image.naturalWidth, image.naturalHeight]; }")
    assert size == [400, 300], size
    stages = page_part(dashboard, ".waterfall th").all_text_contents()
    assert {"fetch", "decode", "encode", "store"} <= set(stages), stages
    expect(page_part(dashboard, ".gallery img").first).to_have_attribute("alt", "A cat", timeout=TIMEOUT)
    dashboard.submit(f"{origin}/chelsea.jpg", {"altText": "A cat", "widht": 90})
    dashboard.status('Ready, from cache. Warning: unknown field "widht".')
    expect(page_part(dashboard, "#hits")).to_have_text("50 %", timeout=TIMEOUT)
    expect(page_part(dashboard, ".gallery li")).to_have_count(1)
    passed("a job of the form shows its image, timings and card; a second one is a cache hit, and its misspelled field is named")


def failures_show_their_reason(dashboard: Dashboard, gateway: str, origin: str):
    dashboard.submit(f"{origin}/none.jpg", {})
    dashboard.status("Failed, not_found: ")
    rows = page_part(dashboard, "#failures li")
    expect(rows).to_have_count(1, timeout=TIMEOUT)
    expect(rows.first).to_contain_text("not_found")
    expect(rows.first).to_contain_text("404")
    rows.first.get_by_role("button", name="Try again").click()
    expect(rows).to_have_count(2, timeout=TIMEOUT)
    post(gateway, [{"source": f"{origin}/others.jpg", "width": 40}])
    expect(rows).to_have_count(3, timeout=TIMEOUT)
    rows.first.get_by_role("button", name="Copy to form").click()
    expect(dashboard.page.get_by_label("Source")).to_have_value(f"{origin}/others.jpg")
    passed("a failure shows its code and message; own jobs can be retried, other sources copied to the form")


def rejects_invalid_jobs(dashboard: Dashboard):
    dashboard.page.locator("#more").fill("[1]")
    dashboard.page.get_by_role("button", name="Submit").click()
    dashboard.status("Not submitted: More fields: expected an object")
    dashboard.submit("initials:HB", {"width": -1})
    dashboard.status("Not submitted: ")
    passed("an invalid job is rejected with the reason")


def escapes_hostile_text(dashboard: Dashboard, gateway: str, origin: str):
    post(gateway, [
        {"source": "initials:XS", "width": 90, "altText": HOSTILE},
        {"source": f"{origin}/{HOSTILE.replace(' ', '%20')}", "width": 90},
    ])
    expect(page_part(dashboard, ".gallery img").first).to_have_attribute("alt", HOSTILE, timeout=TIMEOUT)
    expect(page_part(dashboard, "#failures li").first).to_contain_text("<script>window.stolen=1</script>", timeout=TIMEOUT)
    assert dashboard.page.evaluate("window.stolen") is None
    assert dashboard.page.locator("main script, main [onerror]").count() == 0
    passed("hostile alternative texts and sources are escaped")


def page_is_accessible(dashboard: Dashboard, name: str):
    results = Axe().run(dashboard.page)
    found = [f"{item['impact']} {item['id']}: {item['help']} {[node['target'] for node in item['nodes']][:3]}"
             for item in results.response["violations"]]
    assert not found, "\n".join(found)
    passed(f"axe finds no violations ({name}); {len(results.response['passes'])} rules passed")


def keyboard_reaches_every_control(dashboard: Dashboard):
    page = dashboard.page
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    for name in ["Skip to the form", "pause", "source", "width", "height", "contentMode", "format", "Submit"]:
        assert name in reached, (name, reached)
    page.get_by_label("Source").fill("initials:KB")
    page.locator("#more").fill("")
    page.get_by_label("Source").press("Enter")
    dashboard.status("Ready")
    expect(page.locator(".gallery li").first).to_contain_text("initials:KB", timeout=TIMEOUT)
    passed("the keyboard reaches every control, and Enter submits")


def pause_stops_updates(dashboard: Dashboard, gateway: str):
    page = dashboard.page
    before = page.locator(".gallery li").count()
    page.get_by_role("button", name="Pause").click()
    post(gateway, [{"source": "initials:PA", "width": 61}])
    dashboard.submit("initials:PB", {"width": 62})
    dashboard.status("Ready")
    assert page.locator(".gallery li").count() == before
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".gallery li")).to_have_count(before + 2, timeout=TIMEOUT)
    passed("the page does not change while it is paused")


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
    rows = page_part(dashboard, "#workers tbody tr")
    expect(rows).to_have_count(1, timeout=TIMEOUT)
    for lane in ["high", "normal", "low", "retries"]:
        expect(page_part(dashboard, f"#lag-{lane}")).to_have_text("0", timeout=TIMEOUT)
    with extra_worker() as pid:
        expect(rows).to_have_count(2, timeout=TIMEOUT)
        expect(rows.filter(has_text=str(pid))).to_have_count(1)
    expect(rows).to_have_count(1, timeout=TIMEOUT)
    expect(rows.filter(has_text=str(pid))).to_have_count(0)
    # The rebalance takes a while. Until then, no job is processed.
    post(gateway, [{"id": "after-the-worker", "source": "initials:W", "width": 16}])
    end, state = time.monotonic() + 300, ""
    while state != "ready" and time.monotonic() < end:
        with urllib.request.urlopen(f"{gateway}/v1/jobs/after-the-worker?wait=10") as answer:
            state = json.load(answer)["state"]
    assert state == "ready", f"expected the remaining worker to process the job, found {state}"
    passed("lanes show their lag; a worker appears, and disappears when it has stopped")


def shows_running_batches(dashboard: Dashboard, gateway: str, origin: str):
    """A batch of which one job waits for its start, until it is cancelled."""
    part = page_part(dashboard, "#batches")
    expect(part).to_contain_text("No batches are running.", timeout=TIMEOUT)
    jobs = [{"source": f"{origin}/coffee.jpg", "width": 77}, {"source": "initials:BA", "width": 77, "notBefore": 3600}]
    body = "\n".join(map(json.dumps, jobs)).encode()
    request = urllib.request.Request(f"{gateway}/v1/batches?id=seen", body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request) as answer:
        batch = json.load(answer)["id"]
    row = page_part(dashboard, "#batches tbody tr")
    expect(row).to_have_count(1, timeout=TIMEOUT)
    expect(row).to_contain_text("50 %, 1 of 2", timeout=TIMEOUT)
    assert row.locator("progress").evaluate("(bar) => bar.value") == 0.5
    page_is_accessible(dashboard, "a running batch")
    with urllib.request.urlopen(urllib.request.Request(f"{gateway}/v1/batches/{batch}", method="DELETE")):
        pass
    expect(row).to_have_count(0, timeout=TIMEOUT)
    expect(part).to_contain_text("No batches are running.")
    passed("a running batch is shown with its progress until it has been cancelled")


def retries_dead_letters(dashboard: Dashboard, gateway: str, origin: str):
    port = free_port()
    post(gateway, [{"id": "dead-letter", "source": f"http://127.0.0.1:{port}/late.jpg", "width": 40, "altText": "late",
                    "cache": {"reload": True}}])
    letters = page_part(dashboard, "#dead li")
    expect(letters).to_have_count(1, timeout=TIMEOUT)
    expect(letters.first).to_contain_text("connect_error")
    expect(page_part(dashboard, "#dead-count")).to_have_text("1", timeout=TIMEOUT)
    with late_origin(port, f"{origin}/coffee.jpg"):
        letters.first.get_by_role("button", name="Retry").click()
        expect(page_part(dashboard, "#dead-status")).to_have_text("dead-letter: replayed", timeout=TIMEOUT)
        expect(page_part(dashboard, ".gallery img").first).to_have_attribute("alt", "late", timeout=TIMEOUT)
    expect(letters).to_have_count(0, timeout=TIMEOUT)
    expect(page_part(dashboard, "#dead-count")).to_have_text("0", timeout=TIMEOUT)
    passed("a dead letter is listed, retried and removed; its job becomes ready")


def fits_all_themes_and_widths(browser: Browser, gateway: str, origin: str, folder: Path | None):
    """Checks both themes at two widths. With a folder, takes screenshots after 15 rounds of jobs."""
    looks = {}
    for theme in ["light", "dark"]:
        for name, width in [("wide", 1280), ("narrow", 360)]:
            looks[f"{theme}-{name}"] = Dashboard(
                browser, gateway, color_scheme=theme, reduced_motion="reduce", viewport={"width": width, "height": 900})
    for dashboard in looks.values():
        dashboard.live()
    ended = 0
    for round in range(15 if folder else 2):
        jobs = [{"source": f"{origin}/{name}.jpg", "width": 320 + 16 * (round % 2), "height": 240, "altText": name}
                for name in ["astronaut", "chelsea", "coffee", "hubble", "rocket"][:2 + round % 4]]
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
        expect(page_part(dashboard, "#heard")).to_have_text(f"{ended}", timeout=TIMEOUT)
        expect(page_part(dashboard, "#failures li").first).to_be_visible(timeout=TIMEOUT)
        expect(page_part(dashboard, ".gallery .picture:empty")).to_have_count(0, timeout=TIMEOUT)
        dashboard.page.evaluate("Promise.all([...document.images].map((image) => image.decode()))")
        page_is_accessible(dashboard, name)
        over = dashboard.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, f"{name}: {over} px too wide"
        if folder:
            picture = folder / f"dashboard-{name}.png"
            height = min(2000, dashboard.page.evaluate("document.documentElement.scrollHeight"))
            width = dashboard.page.viewport_size["width"]
            dashboard.page.screenshot(path=str(picture), full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
        dashboard.close()


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
        expect(page.locator("#heard")).to_have_text(f"{before + jobs:,}", timeout=TIMEOUT)
        expect(page.locator(".gallery img")).to_have_count(24, timeout=TIMEOUT)

    burst(1000, 0)
    before = heap()
    burst(9000, 1000)
    after = heap()
    elements = page.evaluate("document.querySelectorAll('*').length")
    rows, held = page.locator("#failures li").count(), page.evaluate("window.held")
    assert page.locator(".gallery li").count() == 24 and rows == 50, rows
    assert elements < 1200, elements
    assert held <= 26, held
    assert after < before + 2_000_000, (before, after)
    dashboard.close()
    passed(f"after 10,000 events there are {elements} elements, {held} pictures and {after / 1e6:.1f} MB of heap "
           f"({before / 1e6:.1f} MB after the first 1,000)")


def asks_for_a_key(browser: Browser):
    with separate_gateway(free_port(), keys_page=KEY) as gateway:
        await_ready(gateway)
        dashboard = Dashboard(browser, gateway)
        page = dashboard.page
        expect(page.locator("#connection")).to_have_text("API key required", timeout=TIMEOUT)
        expect(page.get_by_label("API key")).to_be_focused()
        page_is_accessible(dashboard, "asking for a key")
        for key in ["wrong-key-of-this-length", KEY]:
            page.get_by_label("API key").fill(key)
            page.get_by_label("API key").press("Enter")
            if key != KEY:
                expect(page.locator("#connection")).to_have_text("API key required", timeout=TIMEOUT)
        dashboard.live()
        expect(page.get_by_label("API key")).to_be_hidden()
        # Dead letters require another scope than this key has.
        expect(page.locator("#dead-note")).to_contain_text("use a key with the scope admin", timeout=TIMEOUT)
        dashboard.submit("initials:KE", {})
        dashboard.status("Ready")
        expect(page.locator("#trial-result img")).to_have_count(1)
        page.reload()
        dashboard.live()
        assert page.evaluate("localStorage.length") == 0 and KEY not in page.url
        dashboard.close()
    passed("the page asks for a key, sends it as a header, and keeps it for the tab only")


def reconnects_without_missing_events(browser: Browser, gateway: str):
    """A gateway stops and another takes its place: events in between are not missed."""
    port = free_port()
    with separate_gateway(port) as own:
        await_ready(own)
        dashboard = Dashboard(browser, own).live()
        post(own, [{"source": "initials:A", "width": 51}])
        expect(page_part(dashboard, "#heard")).to_have_text("1", timeout=TIMEOUT)
    expect(page_part(dashboard, "#connection")).to_contain_text("Not connected", timeout=TIMEOUT)
    post(gateway, [{"source": f"initials:{letter}", "width": 52} for letter in "BCD"])
    with separate_gateway(port):
        dashboard.live()
        expect(page_part(dashboard, "#heard")).to_have_text("4", timeout=TIMEOUT)
        dashboard.close()
    passed("the page shows that it is not connected, reconnects, and misses no events")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway")
    parser.add_argument("origin", help="serves the sample photographs")
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    gateway, origin = arguments.gateway, arguments.origin
    with sync_playwright() as playwright:
        # Containers have no user namespaces for the sandbox; the pages are our own.
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page_has_policy_and_etag(gateway)
        dashboard = Dashboard(browser, gateway).live()
        computes_percentiles_and_parses_streams(dashboard)
        form_submits_jobs(dashboard, origin)
        failures_show_their_reason(dashboard, gateway, origin)
        rejects_invalid_jobs(dashboard)
        escapes_hostile_text(dashboard, gateway, origin)
        keyboard_reaches_every_control(dashboard)
        pause_stops_updates(dashboard, gateway)
        shows_running_batches(dashboard, gateway, origin)
        # Before a worker stops: the rebalance of the embedded broker is slow, and jobs wait meanwhile.
        fits_all_themes_and_widths(browser, gateway, origin, arguments.screenshots)
        dashboard.page.bring_to_front()
        shows_lanes_and_workers(dashboard, gateway)
        retries_dead_letters(dashboard, gateway, origin)
        dashboard.close()
        reconnects_without_missing_events(browser, gateway)
        asks_for_a_key(browser)
        memory_is_bounded(browser, gateway, origin)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
