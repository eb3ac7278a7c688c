#!/usr/bin/env python3
"""What blocks.py must refuse, and how it compares output."""
import pathlib
import shutil
import tempfile
import types
import unittest

import blocks
import sentences

FENCE = "```"


class Blocks(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.root, blocks.ROOT = blocks.ROOT, self.folder
        self.addCleanup(setattr, blocks, "ROOT", self.root)
        (self.folder / "files").mkdir()
        (self.folder / "CMakePresets.json").write_text(
            '{"configurePresets": [{"name": "dev"}], "buildPresets": [], "testPresets": []}')

    def page(self, text):
        path = self.folder / "page.md"
        path.write_text(text)
        return blocks.blocks_of(path)

    def block(self, language, code, comment=""):
        return self.page(f"{comment}\n{FENCE}{language}\n{code}\n{FENCE}\n")[0]

    def refuses(self, why, call, *arguments):
        with self.assertRaisesRegex(blocks.Failure, why):
            call(*arguments)

    def test_every_block_has_a_language(self):
        self.refuses("the language '' is none of", blocks.check, self.block("", "x"))
        self.refuses("the language 'rust' is none of", blocks.check, self.block("rust", "x"))
        self.refuses("not behind four spaces", self.page, "Text\n\n    code\n")

    def test_a_rule_is_known_and_stands_above_its_block(self):
        self.refuses("not 'never run'", blocks.check, self.block("cpp", "x", "<!-- test: never run -->"))
        self.refuses("directly above a block", self.page, "<!-- test: compile -->\ntext\n")

    def test_commands_cannot_hide_in_text(self):
        for command in ("$ scripts/demo.sh", "taper run lenet.taper"):
            self.refuses("language 'console'", blocks.check, self.block("text", command))
        self.refuses("begins with", blocks.check, self.block("console", "taper"))

    def test_python_and_cmake_are_parsed(self):
        blocks.check(self.block("python", "x = [1]"))
        self.refuses("never closed", blocks.check, self.block("python", "x = [1"))
        blocks.check(self.block("cmake", "find_package(Taper)"))
        self.refuses("Parse error", blocks.check, self.block("cmake", "find_package(Taper"))

    def test_quotes_stand_in_the_file(self):
        (self.folder / "source.h").write_text("int f(int a,\n      int b);  // adds\n")
        blocks.check(self.block("cpp", "int f(int a, int b);", "<!-- test: quotes source.h -->"))
        self.refuses("does not stand in source.h", blocks.check,
                     self.block("cpp", "int f(int a);", "<!-- test: quotes source.h -->"))

    def test_commands_exist(self):
        def check(command):
            blocks.check(self.block("console", command, "<!-- test: commands exist -->"))
        (self.folder / "script.py").write_text('"--fast"')
        check("$ cmake --preset dev && python script.py --fast  # quick")
        self.refuses("no preset 'debug'", check, "$ cmake --preset debug")
        self.refuses("no option '--slow'", check, "$ python script.py --slow")
        self.refuses("nothing builds", check, "$ build/release/bin/nothing")

    def test_output_is_compared(self):
        self.assertTrue(blocks.same("loss  0.50", "loss 0.505", False))
        self.assertFalse(blocks.same("loss 0.50", "loss 0.6", False))
        self.assertFalse(blocks.same("7 nodes", "8 nodes", False))
        self.assertTrue(blocks.same("7 nodes", "8 nodes", True))
        self.assertFalse(blocks.same("7 nodes", "8 lines", True))
        self.assertTrue(blocks.same("took … in all", "took 3 ms in all", False))

    def run_page(self, code, comment=""):
        self.page(f"{comment}\n{FENCE}console\n{code}\n{FENCE}\n")
        blocks.run_page("page.md", types.SimpleNamespace(
            python="false", files=self.folder / "files", bin=self.folder, data=None))

    def test_commands_run_with_their_output(self):
        self.run_page("$ echo one; echo two; echo three\none\n…\nthree")
        self.run_page("$ cat made \\\n  | tail -1\ntwo", "<!-- test:\nprintf 'one\\ntwo\\n' > made\n-->")
        self.refuses("should print", self.run_page, "$ echo one\ntwo")
        self.refuses("does not print 'two'", self.run_page, "$ echo one\none\ntwo")
        self.refuses("returns 3", self.run_page, "$ exit 3")

    def test_long_sentences_are_found(self):
        page = f"One `a b c`. Two:\n{FENCE}text\nthree\n{FENCE}\n- four\n  five\n| six |\n"
        self.assertEqual([s for s in sentences.sentences_of(page) if s], ["One X.", "Two:", "four five"])

    def test_cpp_is_split_into_declarations_and_statements(self):
        code = "#include <map>\nstruct Net {\n  int a;\n};\nint f(int a) {\n  return a;\n}\nNet net;\nif (net.a) {\n  f(1);\n}"
        includes, declarations, statements = blocks.declarations_and_statements(code.split("\n"), 1)
        self.assertEqual([n for n, _ in includes], [1])
        self.assertEqual([n for n, _ in declarations], [2, 3, 4, 5, 6, 7])
        self.assertEqual([n for n, _ in statements], [8, 9, 10, 11])


if __name__ == "__main__":
    unittest.main()
