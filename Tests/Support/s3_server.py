"""An S3-compatible server for tests: moto, behind a check of signatures that moto lacks.

    s3_server.py PORT FOLDER

Files in FOLDER/buckets become objects: the first component of their path is the bucket, the rest is the key. All
buckets have versioning enabled. The bucket called public can be read without a signature. The server appends a line for
each request to FOLDER/requests, and a line with bucket, key and version of each object to FOLDER/versions. Requests for
some keys (ERRORS) fail with an error of S3 and a custom message. While FOLDER/failure contains the name of one of them, all
requests fail with it; after a blank and a method, all requests with this method.
"""
import http.client
import pathlib
import re
import sys
import threading

import boto3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

PORT, FOLDER = int(sys.argv[1]), pathlib.Path(sys.argv[2])
FAILURE = FOLDER / "failure"
SECRETS = {"PLAIN": ("plain-secret", None), "LENT": ("lent-secret", "lent/token+==")}
ERRORS = {
    "slow-down": ("503 Slow Down", "SlowDown", {}),
    "internal-error": ("500 Internal Server Error", "InternalError", {}),
    "access-denied": ("403 Forbidden", "AccessDenied", {}),
    "storage-full": ("507 Insufficient Storage", "XMinioStorageFull", {}),
    "request-timeout": ("400 Bad Request", "RequestTimeout", {}),
    "moved": ("301 Moved Permanently", "PermanentRedirect", {
        "Location": "http://127.0.0.1:1/", "x-amz-bucket-region": "eu-central-1"}),
}


class CheckingApplication:
    def __init__(self):
        self.store = DomainDispatcherApplication(create_backend_app)
        self.is_loading = True

    def __call__(self, environ, start_response):
        target = environ["RAW_URI"]
        error = None if self.is_loading else find_error(environ, target)
        if not self.is_loading:
            with open(FOLDER / "requests", "a", encoding="utf-8") as log:
                log.write(f"{environ['REQUEST_METHOD']} {environ['HTTP_HOST']} {target} {environ.get('HTTP_IF_NONE_MATCH', '-')}\n")
        if error:
            status, code, headers = error
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>for a test</Message></Error>".encode()
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body))), *headers.items()])
            return [body]
        return self.store(environ, start_response)


def find_error(environ, target):
    """Returns the status, code and headers of the error response to a request; None if the request is valid."""
    name = target.split("?")[0].rsplit("/", 1)[1]
    failure, _, method = read_failure().partition(" ")
    if failure and method in ("", environ["REQUEST_METHOD"]):
        return ERRORS[failure]
    if name in ERRORS:
        return ERRORS[name]
    authorization = environ.get("HTTP_AUTHORIZATION")
    if not authorization:
        is_public = target.startswith("/public/") or environ["HTTP_HOST"].startswith("public.")
        return None if is_public else ("403 Forbidden", "AccessDenied", {})
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(\w+)/\d{8}/eu-test-1/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)", authorization)
    if not found or found[1] not in SECRETS:
        return ("403 Forbidden", "InvalidAccessKeyId", {})
    if "HTTP_X_AMZ_CONTENT_SHA256" not in environ:
        return ("400 Bad Request", "InvalidRequest", {})
    secret, token = SECRETS[found[1]]
    if environ.get("HTTP_X_AMZ_SECURITY_TOKEN") != token:
        return ("400 Bad Request", "InvalidToken", {})
    signed = http.client.HTTPMessage()
    for header in found[2].split(";"):
        # WSGI gives these two headers other names than all others.
        name = header.upper().replace("-", "_")
        signed[header] = environ[name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + name]
    return None if signature(environ, target, signed, secret) == found[3] else ("403 Forbidden", "SignatureDoesNotMatch", {})


def read_failure():
    try:
        return FAILURE.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def signature(environ, target, signed, secret):
    """Returns the signature that botocore computes for the same request."""
    authority = S3SigV4Auth(Credentials("-", secret), "s3", "eu-test-1")
    authority.headers_to_sign = lambda request: signed
    request = AWSRequest(environ["REQUEST_METHOD"], f"http://{environ['HTTP_HOST']}{target}", headers=dict(signed))
    request.headers["X-Amz-Content-SHA256"] = environ["HTTP_X_AMZ_CONTENT_SHA256"]
    request.context["timestamp"] = environ["HTTP_X_AMZ_DATE"]
    return authority.signature(authority.string_to_sign(request, authority.canonical_request(request)), request)


def create_objects():
    client = boto3.client(
        "s3", endpoint_url=f"http://127.0.0.1:{PORT}", region_name="eu-test-1", aws_access_key_id="-", aws_secret_access_key="-")
    root = FOLDER / "buckets"
    for bucket in root.iterdir():
        client.create_bucket(Bucket=bucket.name, CreateBucketConfiguration={"LocationConstraint": "eu-test-1"})
        client.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"})
        for file in sorted(path for path in bucket.rglob("*") if path.is_file()):
            # A file name.N is the Nth version of the object.
            key, _, number = str(file.relative_to(bucket)).rpartition(".")
            key = key if number.isdigit() else str(file.relative_to(bucket))
            put = client.put_object(
                Bucket=bucket.name, Key=key, Body=file.read_bytes(), CacheControl="max-age=600",
                ACL="public-read" if bucket.name == "public" else "private")
            with open(FOLDER / "versions", "a", encoding="utf-8") as versions:
                versions.write(f"{bucket.name} {key} {put['VersionId']}\n")


class QuietHandler(WSGIRequestHandler):
    def log_request(self, *arguments):
        pass


application = CheckingApplication()
server = make_server("127.0.0.1", PORT, application, threaded=True, request_handler=QuietHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
create_objects()
application.is_loading = False
print("serving", flush=True)
threading.Event().wait()
