"""The pictures of docs/sizing.md are what Halcyon makes of the commands that stand for them."""
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Pictures(unittest.TestCase):
    def test_they_are_of_the_sizes_that_the_commands_give(self):
        done = subprocess.run([ROOT / "scripts/sizing-pictures", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
