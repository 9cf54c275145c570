#!/usr/bin/env python3
"""Runs an instance, waits until it is running, and removes it. Needs Python 3.8 and nothing else.

    BERTH_URL=http://127.0.0.1:7070 BERTH_TOKEN=... python3 example.py IMAGE
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("BERTH_URL", "http://127.0.0.1:7070")
TOKEN = os.environ.get("BERTH_TOKEN", "")


class BerthError(Exception):
    """An answer that is not 2xx: its code is for programs, its text for people."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def call(method, path, body=None, **headers):
    request = urllib.request.Request(
        URL + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json", **headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        error = json.load(refusal)["error"]
        raise BerthError(error["code"], error["message"]) from None


def main(image):
    wanted = {"metadata": {"name": "from-python"}, "spec": {"image": image, "cpus": 1, "memoryMiB": 64}}
    # With a key, a repetition after a lost answer creates no second instance.
    instance = call("POST", "/v1/instances", wanted, **{"Idempotency-Key": "from-python-1"})
    path = "/v1/instances/" + instance["metadata"]["id"]
    while instance["status"]["phase"] != "Running":
        if instance["status"]["phase"] == "Failed":
            raise BerthError("Failed", "it does not run")
        time.sleep(0.5)
        instance = call("GET", path)
    print(instance["metadata"]["name"], "runs")
    call("DELETE", path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tiny")
