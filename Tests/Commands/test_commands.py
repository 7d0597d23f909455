"""Every command of the documents is run, as a reader would run it, against a cluster; or it says why not, by a mark from a closed list."""
import collections
import unittest

import blocks
import ground


class Marks(unittest.TestCase):
    def test_a_mark_must_be_one_and_must_be_borne_out(self):
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
    def test_they_do_what_they_say(self):
        found = blocks.all_blocks()
        stage = ground.Ground()
        self.addCleanup(stage.stop)
        folders, left = {}, collections.Counter(block.needs for block in found if block.needs)
        # Those that stay come last: among them are workers, which have the group share its partitions anew when they come and go.
        for block in sorted(found, key=lambda block: block.stays):
            if block.needs:
                continue
            with self.subTest(str(block)):
                if block.document not in folders:
                    folders[block.document] = stage.reader(block.document)
                code, words = stage.run(block, folders[block.document])
                self.assertEqual(code, 0, f"{block}\n{stage.here(block.text)}\n{words}")
        self.assertIsNone(stage.process.poll(), "the cluster has ended")
        run = len(found) - sum(left.values())
        self.assertGreater(run, 20)
        print(f"{len(found)} blocks of commands: {run} run; not run, for they need " + ", ".join(f"{name}: {count}" for name, count in sorted(left.items())))


if __name__ == "__main__":
    unittest.main()
