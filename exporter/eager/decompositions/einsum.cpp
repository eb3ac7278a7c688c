// Sums of products in Einstein's notation. Operands are contracted in pairs, each pair as one
// batched matrix product.
#include <algorithm>
#include <array>
#include <string>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

/// A name of a dimension: a letter as its character code; dimensions of the ellipsis as numbers
/// from first_of_ellipsis on, the last dimension first.
using Label = int;
constexpr Label first_of_ellipsis = 256;
using Labels = std::vector<Label>;

/// A tensor whose dimensions have different names.
struct Named {
  Tensor tensor;
  Labels labels;
};

bool contains(const Labels& labels, Label l) {
  return std::find(labels.begin(), labels.end(), l) != labels.end();
}
int64_t place_of(const Labels& labels, Label l) {
  return std::find(labels.begin(), labels.end(), l) - labels.begin();
}
bool is_always_one(Dim d) { return d.lower() == 1 && d.upper() == 1; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Einsum {
 public:
  Einsum(std::string_view equation, const std::vector<Tensor>& tensors) {
    std::string text;
    for (const char c : equation)
      if (c != ' ') text += c;
    const size_t arrow = text.find("->");
    const std::string inputs = text.substr(0, arrow);
    std::vector<std::string> terms(1);
    for (const char c : inputs)
      if (c == ',')
        terms.emplace_back();
      else
        terms.back() += c;
    if (terms.size() != tensors.size())
      refuse("the equation has " + std::to_string(terms.size()) + " operands, " +
             std::to_string(tensors.size()) + " are given");
    for (size_t i = 0; i < terms.size(); ++i) operands_.push_back(read(terms[i], tensors[i]));
    if (arrow == std::string::npos)
      imply_output();
    else
      read_output(text.substr(arrow + 2));
  }

  /// `path` has pairs of positions in the list of operands. Each pair is removed from the list, and
  /// its product is appended. Without a path, operands are contracted from the left.
  Tensor contract(const Ints& path) {
    for (size_t i = 0; i + 1 < path.size() && operands_.size() > 1; i += 2) {
      const int64_t a = std::min(path[i], path[i + 1]), b = std::max(path[i], path[i + 1]);
      if (a < 0 || a == b || b >= static_cast<int64_t>(operands_.size()))
        refuse("path names operands " + std::to_string(path[i]) + " and " +
               std::to_string(path[i + 1]) + " of " + std::to_string(operands_.size()));
      join(static_cast<size_t>(a), static_cast<size_t>(b));
    }
    while (operands_.size() > 1) {
      join(0, 1);
      std::rotate(operands_.begin(), operands_.end() - 1, operands_.end());
    }
    Named last = std::move(operands_[0]);
    sum_out(last, [&](Label l) { return !contains(output_, l); });
    return in_order(last, output_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw EagerError("einsum: " + what); }

  /// The labels of a term. `rank` is that of its tensor, and gives the width of an ellipsis.
  Labels read_term(const std::string& term, const std::string& whose, int rank) const {
    const size_t dots = term.find('.');
    const bool has_ellipsis = dots != std::string::npos;
    const int letters = static_cast<int>(term.size()) - (has_ellipsis ? 3 : 0);
    if (has_ellipsis && (term.substr(dots, 3) != "..." || term.find('.', dots + 3) != term.npos))
      refuse(whose + " has dots that are not one ellipsis: " + term);
    const int width = rank - letters;
    if (width < 0 || (width > 0 && !has_ellipsis))
      refuse(whose + " names " + std::to_string(letters) + " dimensions, its tensor has " +
             std::to_string(rank));
    Labels labels;
    for (size_t i = 0; i < term.size(); ++i) {
      if (has_ellipsis && i == dots) {
        for (int k = width; k-- > 0;) labels.push_back(first_of_ellipsis + k);
        i += 2;
        continue;
      }
      if (!is_letter(term[i]))
        refuse(whose + " has '" + std::string(1, term[i]) + "'; dimensions are letters");
      labels.push_back(static_cast<unsigned char>(term[i]));
    }
    return labels;
  }

  Named read(const std::string& term, const Tensor& tensor) {
    const Labels all = read_term(term, "term \"" + term + "\"", tensor.rank());
    for (const Label l : all) {
      if (l >= first_of_ellipsis)
        widest_ellipsis_ = std::max(widest_ellipsis_, l - first_of_ellipsis + 1);
      else
        ++occurrences_[static_cast<size_t>(l)];
    }
    Named o{tensor, all};
    // a letter that occurs twice selects the diagonal, which becomes the last dimension
    for (size_t i = 0; i < o.labels.size();) {
      const Label l = o.labels[i];
      const int64_t again =
          std::find(o.labels.begin() + static_cast<int64_t>(i) + 1, o.labels.end(), l) -
          o.labels.begin();
      if (again == static_cast<int64_t>(o.labels.size())) {
        ++i;
        continue;
      }
      const int64_t at = static_cast<int64_t>(i);
      if (!proves_equal(o.tensor.size(at), o.tensor.size(again)))
        refuse("'" + std::string(1, static_cast<char>(l)) + "' is repeated in term \"" + term +
               "\", but its sizes differ: " + to_string(tensor.sizes()));
      o.tensor = diagonal(o.tensor, 0, at, again);
      o.labels.erase(o.labels.begin() + again);
      o.labels.erase(o.labels.begin() + at);
      o.labels.push_back(l);
    }
    return o;
  }

  /// The output without an arrow: the ellipsis, then the letters that occur once, in alphabetical
  /// order.
  void imply_output() {
    for (int k = widest_ellipsis_; k-- > 0;) output_.push_back(first_of_ellipsis + k);
    for (size_t l = 0; l < occurrences_.size(); ++l)
      if (occurrences_[l] == 1) output_.push_back(static_cast<Label>(l));
  }
  void read_output(const std::string& term) {
    const bool has_ellipsis = term.find('.') != std::string::npos;
    const int letters = static_cast<int>(term.size()) - (has_ellipsis ? 3 : 0);
    output_ =
        read_term(term, "the output", std::max(letters, 0) + (has_ellipsis ? widest_ellipsis_ : 0));
    for (const Label l : output_) {
      if (l >= first_of_ellipsis) continue;
      const std::string name = "'" + std::string(1, static_cast<char>(l)) + "'";
      if (occurrences_[static_cast<size_t>(l)] == 0)
        refuse("the output names " + name + ", which no operand has");
      if (std::count(output_.begin(), output_.end(), l) > 1)
        refuse("the output names " + name + " more than once");
    }
  }

  template <class Condition>
  void sum_out(Named& o, const Condition& condition) const {
    Ints dims;
    Labels kept;
    for (size_t i = 0; i < o.labels.size(); ++i)
      if (condition(o.labels[i]))
        dims.push_back(static_cast<int64_t>(i));
      else
        kept.push_back(o.labels[i]);
    if (!dims.empty()) o.tensor = sum(o.tensor, dims);
    o.labels = kept;
  }
  Tensor in_order(const Named& o, const Labels& order) const {
    Ints dims;
    for (const Label l : order) dims.push_back(place_of(o.labels, l));
    return std::is_sorted(dims.begin(), dims.end()) ? o.tensor : permute(o.tensor, dims);
  }

  /// Removes dimensions of size 1 that are longer in the other operand: they are only repeated, and
  /// have no part in the product.
  void drop_repeated(Named& o, const Named& other) const {
    for (size_t i = 0; i < o.labels.size();) {
      const int64_t there = place_of(other.labels, o.labels[i]);
      if (there < static_cast<int64_t>(other.labels.size()) &&
          is_always_one(o.tensor.size(static_cast<int64_t>(i))) &&
          !is_always_one(other.tensor.size(there))) {
        o.tensor = squeeze(o.tensor, static_cast<int64_t>(i));
        o.labels.erase(o.labels.begin() + static_cast<int64_t>(i));
      } else {
        ++i;
      }
    }
  }

  /// Replaces two operands by their product. Labels that no other operand and not the output need
  /// are summed.
  void join(size_t i, size_t j) {
    Named a = std::move(operands_[i]), b = std::move(operands_[j]);
    operands_.erase(operands_.begin() + static_cast<int64_t>(j));
    operands_.erase(operands_.begin() + static_cast<int64_t>(i));
    const auto needed = [&](Label l) {
      return contains(output_, l) ||
             std::any_of(operands_.begin(), operands_.end(),
                         [&](const Named& o) { return contains(o.labels, l); });
    };
    drop_repeated(a, b);
    drop_repeated(b, a);
    sum_out(a, [&](Label l) { return !contains(b.labels, l) && !needed(l); });
    sum_out(b, [&](Label l) { return !contains(a.labels, l) && !needed(l); });
    Labels batch, left, right, summed;
    for (const Label l : a.labels)
      (!contains(b.labels, l) ? left : needed(l) ? batch : summed).push_back(l);
    for (const Label l : b.labels)
      if (!contains(a.labels, l)) right.push_back(l);
    operands_.push_back(
        {product(a, b, batch, left, right, summed), join_labels({batch, left, right})});
  }

  static Labels join_labels(std::initializer_list<Labels> parts) {
    Labels all;
    for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  Dims sizes_of(const Named& o, const Labels& labels) const {
    Dims sizes;
    for (const Label l : labels) sizes.push_back(o.tensor.size(place_of(o.labels, l)));
    return sizes;
  }
  static Dim product_of(const Dims& sizes) {
    Dim n = 1;
    for (const Dim& d : sizes) n *= d;
    return n;
  }

  /// (batch, left, summed) (batch, summed, right) -> (batch, left, right)
  Tensor product(const Named& a, const Named& b, const Labels& batch, const Labels& left,
                 const Labels& right, const Labels& summed) const {
    for (const Label l : join_labels({batch, summed}))
      if (const Dim x = a.tensor.size(place_of(a.labels, l)),
          y = b.tensor.size(place_of(b.labels, l));
          proves_different(x, y))
        refuse("sizes " + x.to_string() + " and " + y.to_string() + " of one subscript differ");
    const Dims batches = sizes_of(a, batch), rows = sizes_of(a, left), columns = sizes_of(b, right);
    const Tensor x = in_order(a, join_labels({batch, left, summed})),
                 y = in_order(b, join_labels({batch, summed, right}));
    Dims sizes = batches;
    sizes.insert(sizes.end(), rows.begin(), rows.end());
    sizes.insert(sizes.end(), columns.begin(), columns.end());
    if (summed.empty()) {  // nothing is summed: products of elements
      Dims wide = batches, narrow = batches;
      wide.insert(wide.end(), rows.begin(), rows.end());
      wide.insert(wide.end(), columns.size(), Dim(1));
      narrow.insert(narrow.end(), rows.size(), Dim(1));
      narrow.insert(narrow.end(), columns.begin(), columns.end());
      return mul(reshape(x, wide), reshape(y, narrow));
    }
    const Dim n = product_of(batches), k = product_of(sizes_of(a, summed));
    return reshape(
        bmm(reshape(x, {n, product_of(rows), k}), reshape(y, {n, k, product_of(columns)})), sizes);
  }

  std::vector<Named> operands_;
  Labels output_;
  std::array<int, first_of_ellipsis> occurrences_{};
  int widest_ellipsis_ = 0;
};

}  // namespace

TAPER_DECOMPOSITION(einsum) {
  const std::vector<Tensor> tensors = a.tensors<"tensors">();
  if (tensors.empty()) throw EagerError("einsum: needs at least one operand");
  return {Einsum(a.text<"equation">(), tensors).contract(a.integers<"path">())};
}

}  // namespace taper::eager::decompositions
