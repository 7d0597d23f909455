"""Submits a job, follows its events and writes the image to a file: example.py GATEWAY SOURCE FILE.

Set HALCYON_KEY if the gateway requires a key.
"""

import os
import sys

from halcyon_client import Halcyon, JobEnded


def main(gateway: str, source: str, file: str) -> int:
    halcyon = Halcyon(gateway, key=os.environ.get("HALCYON_KEY"))
    before = halcyon.cursor()
    job = halcyon.submit({"source": source, "width": 400, "height": 300, "contentMode": "scaleAspectFill"})
    for message in halcyon.events(jobs=[job["id"]], after=before):
        event = message.event
        if event is None:
            continue
        what = event["type"].rsplit(".", 1)[1]
        print(what)
        if what == "ready":
            break
        if what not in ("started", "progress"):
            print(JobEnded(event), file=sys.stderr)
            return 1
    with open(file, "wb") as output:
        output.write(halcyon.delivered(event["data"]["variants"][0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
