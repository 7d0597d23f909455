"""The image with the detector of faces, FACES_IMAGE, in containers with the restrictions of compose.yaml."""
import json
import pathlib
import tempfile
import unittest

from PIL import Image, ImageChops, ImageStat

from cluster import FACES_IMAGE, ROOT, docker, figure, halcyon, mebibytes, shared, status, until

# One face at about (181, 58), 89 by 120 pixels, in a picture of 512 by 512.
SOURCE = "astronaut.jpg"
FACE = (181, 58, 181 + 89, 58 + 120)
VARIANTS = [
    {"name": "whole", "faces": True, "format": "png"},
    {"name": "hidden", "processors": ["blurFaces"], "format": "png"},
    # A strip that is not high enough for both the middle of the picture and the face.
    {"name": "faces", "width": 300, "height": 100, "gravity": "faces", "faces": True},
    {"name": "center", "width": 300, "height": 100, "gravity": "center", "faces": True},
]


def overlap(a, b):
    """The intersection over union of two boxes."""
    def area(box):
        return max(0, box[2] - box[0]) * max(0, box[3] - box[1])
    both = area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))
    return both / (area(a) + area(b) - both)


def box(face):
    return face["x"], face["y"], face["x"] + face["width"], face["y"] + face["height"]


@unittest.skipUnless(FACES_IMAGE, "FACES_IMAGE is not set")
class Faces(unittest.TestCase):
    def check(self, faces):
        """Checks the faces that the variants of these names show."""
        (face,) = faces["whole"]
        self.assertGreater(face["confidence"], 0.8)
        self.assertGreater(overlap(box(face), FACE), 0.8, face)
        # The strip contains all of it, reduced by 300/512 to 52 by 70 pixels.
        (face,) = faces["faces"]
        self.assertGreater(face["height"], 60, face)
        self.assertEqual(faces["center"], [])

    def test_contains_the_detector(self):
        facts = json.loads(docker("image", "inspect", FACES_IMAGE).stdout)[0]
        settings = facts["Config"]
        self.assertEqual(settings["User"], "10001:10001")
        self.assertEqual((settings["Entrypoint"], settings["Cmd"]), (["halcyon"], ["worker"]))
        self.assertEqual(settings["Healthcheck"]["Test"], ["CMD", "halcyon", "health"])
        done = docker("run", "--rm", "--entrypoint", "cat", FACES_IMAGE, "/usr/share/doc/halcyon/NOTICE.detector")
        self.assertIn("MIT License", done.stdout)
        done = halcyon("doctor", "--json", "--brokers", "127.0.0.1:1", "--redis", "redis://127.0.0.1:1", image=FACES_IMAGE, check=False)
        finding = next(finding for finding in json.loads(done.stdout)["findings"] if finding["subject"] == "detector")
        self.assertEqual(finding["level"], "ok", finding)
        self.assertIn("opencv-centerface/1 finds faces", finding["message"])
        figure("size of the image with the detector of faces", mebibytes(facts["Size"]))

    def test_finds_and_hides_faces(self):
        with tempfile.TemporaryDirectory(prefix="halcyon-docker-") as name:
            folder = pathlib.Path(name)
            # The user of the container writes it.
            folder.chmod(0o777)
            job = {"source": f"file:///pictures/{SOURCE}", "variants": VARIANTS}
            done = halcyon(
                "render", "--job", "-", "--json", "--set", "sources.fileRoots=/pictures", "-o", "/results/", image=FACES_IMAGE,
                volumes=[f"{ROOT}/Samples:/pictures:ro", f"{folder}:/results"], input=json.dumps(job))
            facts = dict(zip((variant["name"] for variant in VARIANTS), map(json.loads, done.stdout.splitlines()), strict=True))
            self.check({name: fact["faces"] for name, fact in facts.items() if name != "hidden"})
            whole, hidden = (Image.open(folder / pathlib.Path(facts[name]["file"]).name).convert("L") for name in ("whole", "hidden"))
            left, top, right, bottom = FACE
            changed = ImageChops.difference(whole, hidden)
            self.assertGreater(ImageStat.Stat(changed.crop(FACE)).mean[0], 5)
            # The area that is blurred exceeds the face by a fifth of its height.
            margin = (bottom - top) // 4
            changed.paste(0, (left - margin, top - margin, right + margin, bottom + margin))
            self.assertEqual(changed.getextrema(), (0, 0))

    def test_worker_finds_faces(self):
        """A worker in the cluster of compose.yaml finds faces with a detector that is limited and has no privileges."""
        cluster = shared()

        def compose(*arguments, **options):
            return cluster.compose("--profile", "faces", *arguments, **options)

        compose("run", "--rm", "--no-TTY", "--no-deps", "faces-worker", "topics", "create")
        compose("up", "--detach", "--wait", "--no-recreate", "faces-worker")
        job = {"id": "faces", "source": f"http://origin/fast/{SOURCE}", "variants": VARIANTS}
        done = compose(
            "run", "--rm", "--no-TTY", "--no-deps", "faces-worker", "submit", "--from-file", "-", "--wait", "--json", "--timeout", "60s",
            input=json.dumps(job) + "\n")
        event = json.loads(done.stdout)
        self.check({variant["name"]: variant["faces"] for variant in event["variants"] if variant["name"] != "hidden"})

        worker = cluster.container("faces-worker").process
        (detector,) = until("a detector waits for the next picture", lambda: children(worker, "halcyon-detecto"))
        self.assertEqual(status(detector, "Uid").split()[0], "10001")
        self.assertEqual(int(status(detector, "CapEff"), 16), 0)
        self.assertEqual(status(detector, "NoNewPrivs"), "1")
        limits = pathlib.Path(f"/proc/{detector}/limits").read_text(encoding="utf-8")
        self.assertRegex(limits, rf"Max data size +{256 << 20} +{256 << 20} ")
        figure("memory of an idle detector (RssAnon)", mebibytes(int(status(detector, "RssAnon").split()[0]) * 1024))


def children(process, name):
    """The PIDs of the child processes with this name."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (status(folder.name, "PPid"), status(folder.name, "Name")) == (str(process), name):
                found.append(int(folder.name))
        except (OSError, StopIteration):
            continue
    return found
