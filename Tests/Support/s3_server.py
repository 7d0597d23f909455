"""An S3-compatible store for tests: moto's, behind a check of signatures, which moto does not make.

    s3_server.py PORT FOLDER

Files of FOLDER/buckets become objects: the first part of their path is the bucket, the rest the key. Every bucket keeps versions;
the one called public may be read without a signature. FOLDER/requests gets a line for each request, FOLDER/versions one with
bucket, key and version for each object. Some keys answer with errors of S3's, in words of their own.
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
SECRETS = {"PLAIN": ("plain-secret", None), "LENT": ("lent-secret", "lent/token+==")}
ERRORS = {
    "slow-down": ("503 Slow Down", "SlowDown", {}),
    "internal-error": ("500 Internal Server Error", "InternalError", {}),
    "access-denied": ("403 Forbidden", "AccessDenied", {}),
    "request-timeout": ("400 Bad Request", "RequestTimeout", {}),
    "moved": ("301 Moved Permanently", "PermanentRedirect", {
        "Location": "http://127.0.0.1:1/", "x-amz-bucket-region": "eu-central-1"}),
}


class CheckingApplication:
    def __init__(self):
        self.store = DomainDispatcherApplication(create_backend_app)
        self.is_open = True

    def __call__(self, environ, start_response):
        target = environ["RAW_URI"]
        refusal = None if self.is_open else refused(environ, target)
        if not self.is_open:
            with open(FOLDER / "requests", "a", encoding="utf-8") as log:
                log.write(f"{environ['REQUEST_METHOD']} {environ['HTTP_HOST']} {target} {environ.get('HTTP_IF_NONE_MATCH', '-')}\n")
        if refusal:
            status, code, headers = refusal
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>for a test</Message></Error>".encode()
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body))), *headers.items()])
            return [body]
        return self.store(environ, start_response)


def refused(environ, target):
    """Status, code and headers of the refusal of a request, if it is refused."""
    name = target.split("?")[0].rsplit("/", 1)[1]
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
        signed[header] = environ["HTTP_" + header.upper().replace("-", "_")]
    return None if signature(environ, target, signed, secret) == found[3] else ("403 Forbidden", "SignatureDoesNotMatch", {})


def signature(environ, target, signed, secret):
    """What botocore makes of the same request."""
    authority = S3SigV4Auth(Credentials("-", secret), "s3", "eu-test-1")
    authority.headers_to_sign = lambda request: signed
    request = AWSRequest(environ["REQUEST_METHOD"], f"http://{environ['HTTP_HOST']}{target}", headers=dict(signed))
    request.headers["X-Amz-Content-SHA256"] = environ["HTTP_X_AMZ_CONTENT_SHA256"]
    request.context["timestamp"] = environ["HTTP_X_AMZ_DATE"]
    return authority.signature(authority.string_to_sign(request, authority.canonical_request(request)), request)


def fill():
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
fill()
application.is_open = False
print("serving", flush=True)
threading.Event().wait()
