"""Prints the cursor and the job of each event of a result until it is killed: follow.py GATEWAY."""

import sys

from halcyon import Client

halcyon = Client(sys.argv[1])
after = halcyon.cursor()
print("begun", flush=True)
for message in halcyon.events(types=["ready"], after=after):
    print(f"{message.cursor} {message.event.job.id}" if message.event else f"gap: {message.gap}", flush=True)
