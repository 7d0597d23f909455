"""Compares the pictures of docs/sizing.md with the results of their commands."""
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Pictures(unittest.TestCase):
    def test_pictures_have_the_sizes_of_their_commands(self):
        done = subprocess.run([ROOT / "scripts/sizing-pictures", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
