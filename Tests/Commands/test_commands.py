"""Runs every command of the documentation against a cluster, except blocks with a mark that gives the reason."""
import collections
import unittest

import blocks
from fixture import CommandFixture


class Marks(unittest.TestCase):
    def test_unknown_and_unjustified_marks_are_rejected(self):
        def read(text):
            return list(blocks.blocks("x.md", text))

        plain = read("a\n\n```sh\nls\n```\n```json\n{}\n```\n")
        self.assertEqual([(block.line, block.text, block.needs, block.stays) for block in plain], [(3, "ls\n", None, False)])
        self.assertEqual(read("<!-- needs: docker -->\n```sh\ndocker ps\n```\n")[0].needs, "docker")
        self.assertTrue(read("<!-- stays -->\n```sh\ntail -f x\n```\n")[0].stays)
        for text in ("<!-- needs: luck -->\n```sh\nls\n```\n", "<!-- needs: docker -->\n```sh\nls\n```\n", "<!-- stay -->\n```sh\nls\n```\n", "```\nhalcyon dev\n```\n"):
            with self.assertRaises(ValueError):
                read(text)


class Commands(unittest.TestCase):
    def test_commands_succeed(self):
        found = blocks.all_blocks()
        cluster = CommandFixture()
        self.addCleanup(cluster.stop)
        folders, left = {}, collections.Counter(block.needs for block in found if block.needs)
        # Blocks that stay come last: some are workers, which cause rebalances when they start and stop.
        for block in sorted(found, key=lambda block: block.stays):
            if block.needs:
                continue
            with self.subTest(str(block)):
                if block.document not in folders:
                    folders[block.document] = cluster.make_working_folder(block.document)
                code, output = cluster.run(block, folders[block.document])
                self.assertEqual(code, 0, f"{block}\n{cluster.with_local_addresses(block.text)}\n{output}")
        self.assertIsNone(cluster.process.poll(), "the cluster has ended")
        run = len(found) - sum(left.values())
        self.assertGreater(run, 20)
        print(f"{len(found)} blocks of commands: {run} run; not run, because they need " + ", ".join(f"{name}: {count}" for name, count in sorted(left.items())))


if __name__ == "__main__":
    unittest.main()
