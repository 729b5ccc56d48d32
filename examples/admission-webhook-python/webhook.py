#!/usr/bin/env python3
"""An admission webhook with nothing but the standard library of Python.

/mutate gives pods a label, /validate knows where images may come from. Usage:

    webhook.py CERTIFICATE KEY ADDRESS REGISTRY

CERTIFICATE and KEY are PEM files; ADDRESS is HOST:PORT, where port 0 takes a free one.
"""

import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# No review is longer: it holds an object twice at most.
BODY_BYTES_MAX = 8 << 20


def mutate(pod, _registry):
    """Gives a pod the label `team` if it has none."""
    labels = pod["metadata"].get("labels")
    if labels is None:
        return {"patch": [{"op": "add", "path": "/metadata/labels", "value": {"team": "unassigned"}}]}
    if "team" not in labels:
        return {"patch": [{"op": "add", "path": "/metadata/labels/team", "value": "unassigned"}]}
    return {}


def validate(pod, registry):
    """Denies images from elsewhere, and warns of those that may change without notice."""
    spec = pod["spec"]
    containers = spec.get("initContainers", []) + spec["containers"]
    images = [container["image"] for container in containers]
    strangers = [image for image in images if not image.startswith(registry.rstrip("/") + "/")]
    moving = [image for image in images if is_latest(image.rsplit("/")[-1])]
    answer = {"warnings": [f"{image} may be another image tomorrow" for image in moving]}
    if strangers:
        answer["denial"] = f"images must come from {registry}: {', '.join(strangers)}"
    return answer


def is_latest(name):
    """Whether an image has the tag `latest`, or neither a tag nor a digest."""
    return "@" not in name and (":" not in name or name.endswith(":latest"))


DECISIONS = {"/mutate": mutate, "/validate": validate}


def review(version, asked, answer):
    """The review that answers, in the version that was asked in."""
    denial = answer.get("denial")
    result = {"allowed": denial is None}
    if denial is not None:
        result["status"] = {"status": "Failure", "message": denial, "reason": "Forbidden", "code": 403}
    written = {"apiVersion": version, "kind": "AdmissionReview"}
    if version == "admission.k8s.io/v1alpha1":
        return {**written, "status": result}
    result |= {"uid": asked["uid"], "warnings": answer.get("warnings", [])}
    if "patch" in answer:
        patch = json.dumps(answer["patch"]).encode()
        result |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
    return {**written, "response": result}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        path = self.path.partition("?")[0]
        if length > BODY_BYTES_MAX or path not in DECISIONS:
            self.send_error(404 if path not in DECISIONS else 413)
            return
        question = json.loads(self.rfile.read(length))
        version = question["apiVersion"]
        asked = question["spec" if version.endswith("/v1alpha1") else "request"]
        answer = DECISIONS[path](asked["object"], self.server.registry)
        said = "denied, " + answer["denial"] if "denial" in answer else "allowed"
        said = "patched" if "patch" in answer else said
        where = f"{asked.get('namespace', '')}/{asked.get('name', '')}"
        print(path, version.rpartition("/")[2], asked["operation"], f"{where}: {said}", flush=True)
        body = json.dumps(review(version, asked, answer)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_):
        """Says nothing more than the line above."""


class Service(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, certificate, key, address, registry):
        host, _, port = address.rpartition(":")
        super().__init__((host, int(port)), Handler)
        self.registry = registry
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        # The handshake is left to the thread of the connection, so that a slow one holds up nobody.
        self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    service = Service(*sys.argv[1:])
    print("serving https://{}:{}".format(*service.server_address), flush=True)
    service.serve_forever()
