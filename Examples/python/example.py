"""Submits a job, follows its events and writes the image to a file: example.py GATEWAY SOURCE FILE.

Requires the package in clients/python. Set HALCYON_KEY if the gateway requires a key.
"""

import os
import sys

from halcyon import Client, Job
from halcyon.events import Failed, Ready
from halcyon.failures import failure


def main(gateway: str, source: str, file: str) -> int:
    with Client(gateway, os.environ.get("HALCYON_KEY")) as client:
        before = client.cursor()
        job = client.submit(Job(source, width=400, height=300))
        for message in client.events(jobs=[job.id], after=before):
            if message.event is None:
                continue
            print(message.event.name)
            match message.event.data:
                case Ready(variants=[variant, *_]):
                    with open(file, "wb") as output:
                        output.write(client.fetch(variant))
                    return 0
                case Failed() as failed:
                    print(failure(failed), file=sys.stderr)
                    return 1
            if message.event.is_terminal:
                return 1
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
