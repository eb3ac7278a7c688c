#!/usr/bin/env python3
"""What scripts/size_report.py writes of sizes that are made up."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import size_report

ADDITIONS = {"add_Tensor_f32": 2100, "add_Tensor_f64": 2000, "add_Tensor_f32_avx2": 3000}


class Pages(unittest.TestCase):
    def test_the_page_is_short_and_has_each_figure(self):
        page = size_report.page_of(size_report.Measured(
            [("gcc 12", 36324), ("clang 14", 43890)], [("lenet", 4, 66692)], [("portable", ADDITIONS, 5000)]))
        for line in ("| gcc 12 | 36,324 |", "| clang 14 | 43,890 |", "| lenet | 4 | 66,692 |",
                     "| `portable` | 3 | 5,000 | 2,100 | `add_Tensor_f32_avx2`, 3,000 |"):
            self.assertIn(line, page.split("\n"))
        self.assertLess(page.count("\n"), 45)

    def test_names_the_builds_that_are_too_large(self):
        measured = size_report.Measured([("gcc 12", 36324), ("clang 14", 50000)], [("lenet", 4, 66692)], [])
        self.assertEqual(size_report.too_large(measured, 40000, None), [])
        self.assertEqual(size_report.too_large(measured, 40000, 66693), [])
        self.assertEqual(size_report.too_large(measured, 36324, 66692), [
            "the runtime exceeds 36,324 bytes", "the runtime with the kernels of lenet exceeds 66,692 bytes"])

    def test_the_table_has_a_line_for_each_dtype_of_an_operator(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "sizes.md"
            size_report.write_kernel_table(path, ADDITIONS)
            lines = path.read_text().split("\n")
        self.assertIn("| `add_Tensor` | f32 | 2,100 | 3,000 |  |", lines)
        self.assertIn("| `add_Tensor` | f64 | 2,000 |  |  |", lines)


if __name__ == "__main__":
    unittest.main()
