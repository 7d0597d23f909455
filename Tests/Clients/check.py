"""Checks the Python client: check.py GATEWAY LOCKED_GATEWAY PHOTOGRAPH HANGING_SOURCE UNSTORED…."""

import sys
import uuid

from halcyon_client import Halcyon, JobEnded, Problem, TooLarge

gateway, locked, photograph, hanging, *unstored = sys.argv[1:]
halcyon = Halcyon(gateway)


def problem(body) -> Problem:
    try:
        answer = body()
    except Problem as error:
        return error
    raise AssertionError(f"expected a problem, found {answer!r}")


assert halcyon.image({"source": photograph, "width": 100})[:2] == b"\xff\xd8"
assert halcyon.image({"source": photograph, "variants": [{"width": 40, "format": "png"}]})[:4] == b"\x89PNG"
invalid = problem(lambda: halcyon.submit({"source": photograph, "width": -1}))
assert (invalid.status, invalid.kind, invalid.code) == (400, "invalid-job", "invalid_job") and "width" in invalid.detail
assert problem(lambda: halcyon.state("nobody/s")).kind == "not-found"
assert problem(lambda: Halcyon(locked, retry_timeout=0).submit({"source": "initials:A"})).kind == "unauthorized"
assert problem(lambda: next(iter(halcyon.events(after="nonsense")))).kind == "bad-request"
assert Halcyon(locked, key="0123456789abcdef0123456789abcdef").image({"source": "initials:A", "width": 9})
for picture in unstored:
    sizes = {len(halcyon.image({"source": picture, "width": 400, "height": 300, **rule})) for rule in ({"maxAge": -1}, {"cache": {"memory": False}})}
    assert len(sizes) == 1 and sizes.pop() > 1000, picture
try:
    halcyon.image({"source": photograph + ".none", "width": 9})
    raise AssertionError("a job whose source does not exist is ready")
except JobEnded as end:
    assert end.code == "not_found", end
try:
    Halcyon(gateway, maximum_bytes=2000).image({"source": photograph, "width": 300})
    raise AssertionError("an image above the limit is accepted")
except TooLarge:
    pass

before = halcyon.cursor()
job = halcyon.submit({"source": hanging, "width": 9, "id": str(uuid.uuid4())})["id"]
for message in halcyon.events(jobs=[job], after=before):
    if message.event["type"].endswith(".started"):
        assert halcyon.cancel(job)
    elif not message.event["type"].endswith(".progress"):
        assert message.event["type"].endswith(".cancelled"), message
        break
late = Halcyon(gateway, job_timeout=1)
before = halcyon.cursor()
try:
    late.image({"source": hanging, "width": 10, "id": "late"})
    raise AssertionError("the job has ended")
except TimeoutError:
    pass
assert next(iter(halcyon.events(types=["cancelled"], jobs=["late"], after=before))).cursor
print("ok")
