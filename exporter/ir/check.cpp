#include "taper/exporter/ir/check.h"

namespace taper {

bool proves(const Check& c) {
  switch (c.comparison) {
    case Comparison::equal:
      return proves_equal(c.left, c.right);
    case Comparison::not_equal:
      return proves_different(c.left, c.right);
    case Comparison::less:
      return proves_less(c.left, c.right);
    case Comparison::less_equal:
      return proves_at_least(c.right, c.left);
  }
  return false;
}

bool refutes(const Check& c) {
  switch (c.comparison) {
    case Comparison::equal:
      return proves_different(c.left, c.right);
    case Comparison::not_equal:
      return proves_equal(c.left, c.right);
    case Comparison::less:
      return proves_at_least(c.left, c.right);
    case Comparison::less_equal:
      return proves_less(c.right, c.left);
  }
  return false;
}

}  // namespace taper
