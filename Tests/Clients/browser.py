"""Opens the browser's example in Chromium: `browser.py PAGE GATEWAY SOURCE NONE UNSTORED…`, where PAGE is the URL of browser.html, NONE a source that is not
there and UNSTORED sources that may not be stored. Prints ok.
"""

import sys
from urllib.parse import urlencode

from playwright.sync_api import expect, sync_playwright

PATIENCE = 120_000


def main():
    page_url, gateway, source, none, *unstored = sys.argv[1:]
    with sync_playwright() as playwright:
        # Containers have no user namespaces for the sandbox; the page is our own.
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))

        for shown in [source, *unstored]:
            page.goto(f"{page_url}?{urlencode({'gateway': gateway, 'source': shown, 'alt': 'a cat'})}")
            picture = page.get_by_role("img", name="a cat")
            expect(picture).to_be_visible(timeout=PATIENCE)
            expect(page.get_by_role("status")).to_have_text("ready")
            page.wait_for_function("document.querySelector('img').naturalWidth === 400", timeout=PATIENCE)

        page.goto(f"{page_url}?{urlencode({'gateway': gateway, 'source': none})}")
        expect(page.get_by_role("status")).to_contain_text("failed: not_found", timeout=PATIENCE)
        browser.close()
    if complaints:
        sys.exit("\n".join(complaints))
    print("ok")


main()
