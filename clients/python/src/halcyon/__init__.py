"""A client for Halcyon, a distributed cluster of image workers.

    from halcyon import Client, Job

    client = Client("http://127.0.0.1:8080")
    image = client.image(Job("https://example.org/cat.jpg", width=400, height=300))

AsyncClient has the same methods for asyncio. Errors of requests are in halcyon.errors, those of jobs in halcyon.failures.
"""

__version__ = "0.1.0"

from . import errors, events, failures, jobs, keys, processors
from ._operations import (
    AcceptedJob,
    BatchFailure,
    BatchSubmission,
    Image,
    JobState,
    RegisteredPreset,
    RejectedJob,
)
from .aio import AsyncClient
from .client import Client
from .errors import ConnectionFailed, HalcyonError, InvalidResponse, JobTimeout, NotDelivered, Problem, TooLarge
from .events import Batch, Event, Info, Message, Ready, Variant
from .failures import JobCancelled, JobEnded, JobFailed, JobSuperseded
from .jobs import Cache, CropRect, Job, Output, Point, Quality, Quantization, Sizer, Template, Trim
from .keys import result_keys
from .urls import URLSigner

__all__ = [
    "AcceptedJob", "AsyncClient", "Batch", "BatchFailure", "BatchSubmission", "Cache", "Client", "ConnectionFailed", "CropRect", "Event",
    "HalcyonError", "Image", "Info", "InvalidResponse", "Job", "JobCancelled", "JobEnded", "JobFailed", "JobState", "JobSuperseded", "JobTimeout",
    "Message", "NotDelivered", "Output", "Point", "Problem", "Quality", "Quantization", "Ready", "RegisteredPreset", "RejectedJob", "Sizer",
    "Template", "TooLarge", "Trim", "URLSigner", "Variant", "errors", "events", "failures", "jobs", "keys", "processors", "result_keys",
]  # fmt: skip
