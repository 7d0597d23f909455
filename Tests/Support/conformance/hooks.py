"""What Schemathesis is told of the gateway."""
import schemathesis

LINES = "application/x-ndjson"


@schemathesis.serializer(LINES)
def serialize(context, value):
    """Many jobs are a text."""
    return value.encode("utf-8", "replace")


@schemathesis.hook
def filter_case(context, case):
    """Whatever is sent as many jobs is a text: what is wrong with a line is said in its answer, under 200."""
    return case.media_type != LINES or isinstance(case.body, str)
