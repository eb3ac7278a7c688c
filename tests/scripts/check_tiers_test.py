#!/usr/bin/env python3
"""What scripts/check_tiers.py must refuse, and what it must not, in small trees that are made up."""
import contextlib
import io
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_tiers


class Tiers(unittest.TestCase):
    def check(self, files):
        """The exit status and the lines of the script for a tree of `files`: path → text."""
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        self.addCleanup(setattr, check_tiers, "ROOT", check_tiers.ROOT)
        check_tiers.ROOT = folder
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = check_tiers.main()
        return status, output.getvalue().splitlines()

    def accepts(self, files):
        status, lines = self.check(files)
        self.assertEqual((status, len(lines)), (0, 1), lines)  # how many files there are

    def refuses(self, files, *messages):
        status, lines = self.check(files)
        self.assertEqual((status, lines[:-1]), (1, list(messages)))

    def refuses_line(self, path, line, message):
        self.refuses({path: f"#pragma once\n{line}\n"}, f"{path}:2: {message}")

    def test_a_tree_without_circles_is_accepted(self):
        self.accepts({
            "runtime/core/view.h": "#include <cstdint>\n",
            "kernels/kernel.h": '#include "taper/runtime/core/view.h"\n',
            "kernels/portable/add.cpp": '#include "taper/kernels/kernel.h"\n#include "taper/runtime/core/view.h"\n',
            "runtime/extension/module/module.h": '#include "taper/runtime/core/view.h"\n#include <string>\n',
            "exporter/ir/graph.h": '#include <vector>\n#include "taper/kernels/kernel.h"\n',
            "exporter/emit/emit.h": '#include "taper/exporter/ir/graph.h"\n#include "taper/runtime/core/view.h"\n',
        })

    def test_files_of_one_folder_may_include_each_other(self):
        self.accepts({
            "exporter/eager/ops/sum.h": '#include "taper/exporter/eager/tensor.h"\n',
            "exporter/eager/tensor.cpp": '#include "taper/exporter/eager/ops/sum.h"\n',
        })

    def test_two_folders_that_include_each_other_are_a_circle(self):
        self.refuses({
            "exporter/ir/graph.h": '#include <vector>\n#include "taper/exporter/io/file.h"\n',
            "exporter/io/file.h": "",
            "exporter/io/save.cpp": '#include "taper/exporter/ir/graph.h"\n',
        }, "folders depend on each other: exporter/io → exporter/ir → exporter/io",
            "  exporter/io/save.cpp:1 includes exporter/ir/graph.h",
            "  exporter/ir/graph.h:2 includes exporter/io/file.h")

    def test_a_folder_and_one_inside_it_are_two(self):
        self.refuses({
            "runtime/method.h": '#include "taper/runtime/packing/pack.h"\n',
            "runtime/packing/pack.h": '#include "taper/runtime/method.h"\n',
        }, "folders depend on each other: runtime → runtime/packing → runtime",
            "  runtime/method.h:1 includes runtime/packing/pack.h",
            "  runtime/packing/pack.h:1 includes runtime/method.h")

    def test_a_circle_of_three_folders_is_told_once(self):
        self.refuses({
            "exporter/trace/a.h": '#include "taper/exporter/emit/b.h"\n#include "taper/exporter/ir/leaf.h"\n',
            "exporter/emit/b.h": '#include "taper/exporter/nn/c.h"\n',
            "exporter/nn/c.h": '#include "taper/exporter/trace/a.h"\n',
            "exporter/ir/leaf.h": "",
            "exporter/cli/root.cpp": '#include "taper/exporter/trace/a.h"\n',
        }, "folders depend on each other: exporter/emit → exporter/nn → exporter/trace → exporter/emit",
            "  exporter/emit/b.h:1 includes exporter/nn/c.h",
            "  exporter/nn/c.h:1 includes exporter/trace/a.h",
            "  exporter/trace/a.h:1 includes exporter/emit/b.h")

    def test_each_of_two_circles_is_told(self):
        self.refuses({
            "exporter/ir/graph.h": '#include "taper/exporter/io/file.h"\n#include "taper/exporter/nn/layer.h"\n',
            "exporter/io/file.h": '#include "taper/exporter/ir/graph.h"\n',
            "exporter/nn/layer.h": '#include "taper/exporter/ir/graph.h"\n',
        }, "folders depend on each other: exporter/io → exporter/ir → exporter/io",
            "  exporter/io/file.h:1 includes exporter/ir/graph.h",
            "  exporter/ir/graph.h:1 includes exporter/io/file.h",
            "folders depend on each other: exporter/nn → exporter/ir → exporter/nn",
            "  exporter/nn/layer.h:1 includes exporter/ir/graph.h",
            "  exporter/ir/graph.h:2 includes exporter/nn/layer.h")

    def test_a_tier_includes_none_above_it(self):
        self.refuses_line("runtime/method.h", '#include "taper/exporter/ir/graph.h"',
                          "device code includes host code: taper/exporter/ir/graph.h")
        self.refuses_line("runtime/method.h", '#include "taper/runtime/extension/module/module.h"',
                          "device code includes app code: taper/runtime/extension/module/module.h")
        self.refuses_line("runtime/extension/module/module.h", '#include "taper/exporter/exporter.h"',
                          "app code includes host code: taper/exporter/exporter.h")
        self.refuses_line("exporter/ir/graph.h", '#include "taper/tests/support/data.h"',
                          "includes taper/tests/support/data.h, which belongs to no tier")
        self.refuses({"delegates/npu/npu.h": ""}, "delegates/npu/npu.h: belongs to no tier")

    def test_edges_within_a_tier_are_forbidden(self):
        for path, target, why in [
                ("runtime/core/view.h", "runtime/method.h", "runtime/core is the bottom"),
                ("runtime/platform/cpu.h", "kernels/kernel.h", "the platform knows runtime/core only"),
                ("kernels/kernel.h", "runtime/method.h", "kernels know runtime/core, threads and CPU features only"),
                ("kernels/kernel.h", "kernels/portable/sums.h",
                 "only optimized and quantized kernels build on portable ones"),
                ("kernels/optimized/add.h", "kernels/quantized/blocks.h", "quantized kernels build on optimized ones"),
                ("kernels/portable/add.h", "kernels/optimized/wide.h", "kernel libraries do not know each other"),
                ("runtime/method.h", "kernels/portable/sums.h", "the runtime takes kernels as a table"),
                ("exporter/emit/emit.h", "delegates/npu/compile/npu.h", "delegates are handed in")]:
            self.refuses_line(path, f'#include "taper/{target}"', f"includes taper/{target}: {why}")
        self.accepts({"kernels/optimized/add.cpp": '#include "taper/kernels/portable/sums.h"\n'
                                                   '#include "taper/runtime/platform/threads.h"\n'})

    def test_an_include_names_its_folder(self):
        self.refuses_line("exporter/ir/graph.cpp", '#include "graph.h"', 'write "taper/<folder>/…" instead of "graph.h"')

    def test_device_code_includes_few_headers_of_others(self):
        self.refuses_line("kernels/add.h", "#include <vector>", "device code includes <vector>")
        self.refuses_line("kernels/portable/add.cpp", "#include <immintrin.h>", "device code includes <immintrin.h>")
        self.refuses_line("runtime/method.h", "#include <unistd.h>", "device code includes <unistd.h>")
        self.refuses_line("runtime/method.h", "#include <flatbuffers/verifier.h>",
                          "device code includes <flatbuffers/verifier.h>")
        self.accepts({"kernels/optimized/add.cpp": "#include <immintrin.h>\n",
                      "runtime/program/load.cpp": "#include <flatbuffers/verifier.h>\n",
                      "runtime/platform/cpu.cpp": "#include <unistd.h>\n"})

    def test_device_code_uses_nothing_that_a_microcontroller_lacks(self):
        for line, what in [
                ("throw 1;", "throw"),
                ("try {", "try"),
                ("catch (...) {", "catch"),
                ("auto* b = dynamic_cast<B*>(a);", "dynamic_cast"),
                ("auto& type = typeid(a);", "typeid"),
                ("int* p = new int;", "new (heap); construct in memory that the caller gave"),
                ("  delete [] p;", "delete"),
                ("void* p = malloc(8);", "the C heap"),
                ('printf("x");', "printing"),
                ("std::vector<int> x;", "a part of the standard library that device code does without"),
                ("std::function<void()> f;", "a part of the standard library that device code does without"),
                ("thread_local int x;", "thread_local")]:
            self.refuses_line("runtime/method.h", line, f"device code uses {what}")

    def test_device_code_may_say_it_and_other_code_may_use_it(self):
        self.accepts({
            "runtime/method.h": '/* throw\n new int */\nconst char* text = "throw";  // malloc(8)\n'
                                "Method(const Method&) = delete;\nnew (place) Method();\n",
            "runtime/extension/module/module.cpp": "auto p = new int;\nthrow 1;\n",
        })


if __name__ == "__main__":
    unittest.main()
