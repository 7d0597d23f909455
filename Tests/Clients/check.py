"""Checks the Python client: check.py GATEWAY LOCKED_GATEWAY PHOTOGRAPH HANGING_SOURCE UNSTORED…."""

import sys
import uuid

from halcyon import Client, JobFailed, JobTimeout, Problem, TooLarge

gateway, locked, photograph, hanging, *unstored = sys.argv[1:]
halcyon = Client(gateway)


def problem(body) -> Problem:
    try:
        answer = body()
    except Problem as error:
        return error
    raise AssertionError(f"expected a problem, found {answer!r}")


assert halcyon.image({"source": photograph, "width": 100}).data[:2] == b"\xff\xd8"
assert halcyon.image({"source": photograph, "variants": [{"width": 40, "format": "png"}]}).data[:4] == b"\x89PNG"
invalid = problem(lambda: halcyon.submit({"source": photograph, "width": -1}))
assert (invalid.status, invalid.kind, invalid.code) == (400, "invalid-job", "invalid_job") and "width" in invalid.detail
assert problem(lambda: halcyon.job_state("nobody/s")).kind == "not-found"
assert problem(lambda: Client(locked, retry_timeout=0).submit({"source": "initials:A"})).kind == "unauthorized"
assert problem(lambda: next(iter(halcyon.events(after="nonsense")))).kind == "bad-request"
assert Client(locked, key="0123456789abcdef0123456789abcdef").image({"source": "initials:A", "width": 9})
for picture in unstored:
    sizes = {len(halcyon.image({"source": picture, "width": 400, "height": 300, **rule}).data) for rule in ({"maxAge": -1}, {"cache": {"memory": False}})}
    assert len(sizes) == 1 and sizes.pop() > 1000, picture
try:
    halcyon.image({"source": photograph + ".none", "width": 9})
    raise AssertionError("a job whose source does not exist is ready")
except JobFailed as end:
    assert end.code == "not_found", end
try:
    Client(gateway, maximum_bytes=2000).image({"source": photograph, "width": 300})
    raise AssertionError("an image above the limit is accepted")
except TooLarge:
    pass

before = halcyon.cursor()
job = halcyon.submit({"source": hanging, "width": 9, "id": str(uuid.uuid4())}).id
for message in halcyon.events(jobs=[job], after=before):
    if message.event.name == "started":
        assert halcyon.cancel(job)
    elif message.event.name != "progress":
        assert message.event.name == "cancelled", message
        break
late = Client(gateway, job_timeout=1)
before = halcyon.cursor()
try:
    late.image({"source": hanging, "width": 10, "id": "late"})
    raise AssertionError("the job has ended")
except JobTimeout:
    pass
assert next(iter(halcyon.events(types=["cancelled"], jobs=["late"], after=before))).cursor
print("ok")
