#!/usr/bin/env python3
"""A detector for tests, which speaks the protocol of docs/detectors.md well or badly: detector.py MODE [BOXES]

MODE is `boxes` to find the boxes of a JSON array, in fractions of the picture and for both kinds; `photo` for two fixed boxes; `count` for a box
whose confidence is the number of pictures so far divided by 100; or one of the faults below. `first FILE MODE` behaves like MODE until FILE exists,
which it creates, and like `photo` from then on.
"""
import json
import os
import signal
import socket
import struct
import sys
import time

PHOTO = [
    {"x": 0.225, "y": 0.15, "width": 0.2, "height": 0.25, "confidence": 0.9},
    {"x": 0.71, "y": 0.51, "width": 0.1, "height": 0.25, "confidence": 0.6},
]


def receive(end, count):
    data = b""
    while len(data) < count:
        part = end.recv(count - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data


def request(end):
    length, bodies = struct.unpack("=II", receive(end, 8))
    (size,) = struct.unpack("=Q", receive(end, 8))
    header, pixels = json.loads(receive(end, length)), receive(end, size)
    assert bodies == 1 and size == header["width"] * header["height"] * 3 and header["bands"] == 3, header
    return header, pixels


def send(end, value, bodies=()):
    header = value if isinstance(value, bytes) else json.dumps(value).encode()
    end.sendall(struct.pack(f"=II{len(bodies)}Q", len(header), len(bodies), *map(len, bodies)) + header + b"".join(bodies))


def main(mode, boxes):
    end = socket.socket(fileno=0)
    greeting = {"protocol": 1, "detector": "opencv-centerface/1", "kinds": ["faces", "objects"]}
    if mode == "silent":
        time.sleep(3600)
    if mode == "dies-first":
        os.kill(os.getpid(), signal.SIGSEGV)
    if mode == "chatty":
        end.sendall(b"hello\n" * 100)
    greeting |= {"other-name": {"detector": "other/2"}, "other-protocol": {"protocol": 2}, "faces-only": {"kinds": ["faces"]}}.get(mode, {})
    send(end, [1] if mode == "no-greeting" else greeting)
    number = 0
    while True:
        header, pixels = request(end)
        number += 1
        if mode == "hang":
            time.sleep(3600)
        elif mode == "fork-hang":
            # The child holds the socket for longer than the test allows.
            time.sleep(3600 if os.fork() else 20)
        elif mode == "crash":
            print("about to crash", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        elif mode == "exit":
            sys.exit(3)
        elif mode == "memory":
            held = [bytearray(16 << 20) for _ in range(100)]
            assert held
        elif mode == "garbage":
            send(end, os.urandom(200))
        elif mode == "half":
            end.sendall(struct.pack("=II", 1000, 0) + b"{")
            time.sleep(3600)
        elif mode == "huge":
            end.sendall(struct.pack("=II", 0xFFFFFFFF, 0) + b" " * 100)
        elif mode == "bodies":
            send(end, {"boxes": []}, [b"x" * 100])
        elif mode == "error":
            send(end, {"error": "out of order"})
        elif mode == "many":
            send(end, {"boxes": [{"x": 0, "y": 0, "width": 1, "height": 1, "confidence": 1}] * 257})
        elif mode == "nan":
            send(end, b'{"boxes":[{"x":NaN,"y":0,"width":1,"height":1,"confidence":1}]}')
        elif mode == "empty-box":
            send(end, {"boxes": [{"x": 0, "y": 0, "width": 0, "height": 1, "confidence": 1}]})
        elif mode == "far-box":
            send(end, {"boxes": [{"x": 1e300, "y": 0, "width": 1, "height": 1, "confidence": 1}]})
        elif mode == "sure-box":
            send(end, {"boxes": [{"x": 0, "y": 0, "width": 1, "height": 1, "confidence": 1.5}]})
        else:
            if mode == "count":
                boxes = [{"x": 0, "y": 0, "width": 1, "height": 1, "confidence": number / 100}]
            across, down = header["width"], header["height"]
            send(end, {
                "boxes": [
                    {"label": "x", "confidence": box["confidence"], "x": box["x"] * across, "y": box["y"] * down,
                     "width": box["width"] * across, "height": box["height"] * down}
                    for box in boxes
                ]
            })


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "first":
        _, file, arguments[0] = arguments
        arguments = arguments[:1] if not os.path.exists(file) else ["photo"]
        open(file, "a").close()
    main(arguments[0], json.loads(arguments[1]) if len(arguments) > 1 else PHOTO)
