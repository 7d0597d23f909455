"""Opens the example for browsers in Chromium: `browser.py PAGE GATEWAY SOURCE MISSING UNSTORED…`, where PAGE is the URL
of browser.html, MISSING a source that does not exist, and UNSTORED are sources that must not be stored. Prints ok.
"""

import sys
from urllib.parse import urlencode

from playwright.sync_api import expect, sync_playwright

TIMEOUT = 120_000


def main():
    page_url, gateway, source, missing, *unstored = sys.argv[1:]
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        # Containers have no user namespaces for the sandbox; the page is our own.
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT)
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))

        for shown in [source, *unstored]:
            page.goto(f"{page_url}?{urlencode({'gateway': gateway, 'source': shown, 'alt': 'a cat'})}")
            picture = page.get_by_role("img", name="a cat")
            expect(picture).to_be_visible()
            expect(page.get_by_role("status")).to_have_text("ready")
            page.wait_for_function("document.querySelector('img').naturalWidth === 400")

        page.goto(f"{page_url}?{urlencode({'gateway': gateway, 'source': missing})}")
        expect(page.get_by_role("status")).to_contain_text("failed: not_found")
        browser.close()
    if errors:
        sys.exit("\n".join(errors))
    print("ok")


main()
