#include "taper/exporter/ir/parser.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/ir/cursor.h"

namespace taper::ir {
namespace {

/// File and function names of a Location are never freed.
const char* keep(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return all.insert(text).first->c_str();
}

class Parser {
 public:
  Parser(std::string_view text, const Payloads& payloads) : c_(text), payloads_(payloads) {}

  std::unique_ptr<Graph> run() {
    c_.expect("graph");
    graph_ = std::make_unique<Graph>(c_.word());
    while (!c_.at_end()) line();
    return std::move(graph_);
  }

 private:
  void line() {
    if (c_.take("symbol"))
      symbol();
    else if (c_.take("input"))
      input();
    else if (c_.take("state"))
      state();
    else if (c_.take("constant"))
      constant();
    else if (c_.take("output"))
      output();
    else if (c_.take("write"))
      write();
    else if (c_.take("bind"))
      bind();
    else if (c_.take("check"))
      check();
    else
      node();
  }

  Dim dim() {
    return read_dim(c_, [this](std::string_view name) {
      auto at = symbols_.find(name);
      if (at == symbols_.end()) c_.refuse("a symbol that is declared above");
      return at->second;
    });
  }
  std::vector<Dim> dim_list() {
    std::vector<Dim> dims;
    list([&] { dims.push_back(dim()); });
    return dims;
  }
  template <class Element>
  void list(Element element) {
    c_.expect("[");
    if (c_.take("]")) return;
    do element();
    while (c_.take(","));
    c_.expect("]");
  }

  DType dtype() {
    const std::string name = c_.word();
    for (int i = 0; i < dtype_count; ++i)
      if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
    c_.refuse("a dtype, not " + name);
  }
  Type type() {
    const DType d = dtype();
    Type t = dense_type(d, dim_list());
    if (c_.take("strides")) {
      const std::vector<Dim> strides = dim_list();
      if (static_cast<int>(strides.size()) != t.rank) c_.refuse("a stride for each size");
      std::ranges::copy(strides, t.strides);
    }
    if (c_.take("offset")) t.offset = dim();
    return t;
  }
  Value* value() {
    const std::string name = c_.value_name();
    auto at = values_.find(name);
    if (at == values_.end()) c_.refuse("a value that is computed above, not %" + name);
    return at->second;
  }
  Value* optional_value() { return c_.take("none") ? nullptr : value(); }

  void name_value(Value* v, const std::string& name) {
    graph_->rename(v, name);
    if (!values_.emplace(name, v).second) c_.refuse("another name: %" + name + " is taken");
  }
  std::shared_ptr<const Payload> payload() {
    if (c_.take("zeros")) return nullptr;
    const std::string key = c_.word();
    auto at = payloads_.find(key);
    if (at == payloads_.end()) c_.refuse("a digest whose elements were given, not " + key);
    return at->second;
  }

  void symbol() {
    const std::string name = c_.word();
    c_.expect("in");
    c_.expect("[");
    const int64_t lower = c_.integer();
    c_.expect(",");
    const int64_t upper = c_.integer();
    c_.expect("]");
    symbols_[name] = Dim::symbol(name, lower, upper);
  }
  void input() {
    const std::string name = c_.string();
    c_.expect("=");
    if (c_.peek() != '%') return graph_->add_number_input(name, dim());
    const std::string of_value = c_.value_name();
    c_.expect(":");
    name_value(graph_->add_input(name, type()), of_value);
  }
  void state() {
    const std::string path = c_.string();
    c_.expect("=");
    const std::string of_value = c_.value_name();
    c_.expect(":");
    const Type t = type();
    constexpr const char* kinds[] = {"parameter", "buffer", "optimizer", "random", "cache"};
    int kind = 0;
    while (kind < 5 && !c_.take(kinds[kind])) ++kind;
    if (kind == 5) c_.refuse("a kind of state");
    const bool trainable = c_.take("trainable");
    std::vector<int64_t> sizes;
    for (int i = 0; i < t.rank; ++i) sizes.push_back(t.sizes[i].value());
    name_value(
        graph_->add_state(path, static_cast<StateKind>(kind), trainable, t.dtype, sizes, payload())
            ->value.get(),
        of_value);
  }
  void constant() {
    const std::string path = c_.string();
    c_.expect("=");
    const std::string of_value = c_.value_name();
    c_.expect(":");
    type();
    const auto elements = payload();
    if (elements == nullptr) c_.refuse("the digest of a constant");
    name_value(graph_->add_constant(path, elements), of_value);
  }
  void output() {
    const std::string name = c_.string();
    c_.expect("=");
    if (c_.peek() == '%')
      graph_->add_output(name, value());
    else
      graph_->add_number_output(name, dim());
  }
  void write() {
    const std::string path = c_.string();
    State* s = graph_->find_state(path);
    if (s == nullptr) c_.refuse("the path of a state, not " + path);
    c_.expect("=");
    graph_->add_write(s, value());
  }
  void bind() {
    SymbolBinding b{dim(), SymbolSource::input_extent};
    c_.expect("=");
    if (c_.take("input")) {
      b.source = SymbolSource::input_number, b.first = static_cast<int>(c_.integer());
    } else if (c_.take("element")) {
      b.source = SymbolSource::element, b.second = static_cast<int>(c_.integer());
      c_.expect("of");
      b.value = value();
    } else {
      c_.expect("extent");
      b.second = static_cast<int>(c_.integer());
      if (c_.take("written")) {
        c_.expect("to");
        b.source = SymbolSource::kernel_extent, b.value = value();
      } else {
        c_.expect("of");
        c_.expect("input");
        b.first = static_cast<int>(c_.integer());
      }
    }
    graph_->bind_symbol(b);
  }
  void check() {
    Check k{Comparison::equal, dim(), {}, {}};
    if (c_.take("=="))
      k.comparison = Comparison::equal;
    else if (c_.take("!="))
      k.comparison = Comparison::not_equal;
    else if (c_.take("<="))
      k.comparison = Comparison::less_equal;
    else if (c_.take("<"))
      k.comparison = Comparison::less;
    else
      c_.refuse("a comparison");
    k.right = dim();
    k.message = c_.string();
    graph_->add_check(k);
  }

  void node() {
    std::vector<std::string> names;
    std::vector<Type> types;
    if (c_.peek() == '%' || c_.peek() == 'n') {
      do result(names, types);
      while (c_.take(","));
      c_.expect("=");
    }
    const std::string op_name = c_.word();
    const eager::OperatorInfo* info = find_operator(op_name);
    if (info == nullptr) c_.refuse("an operator, not " + op_name);
    std::vector<Argument> arguments;
    c_.expect("(");
    for (int i = 0; i < info->argument_count; ++i) {
      if (i > 0) c_.expect(",");
      arguments.push_back(argument(info->arguments[i]));
    }
    c_.expect(")");
    Location at;
    std::string module;
    if (c_.take("@")) {
      at.file = keep(c_.string());
      at.line = static_cast<int>(c_.integer());
      at.function = keep(c_.string());
    }
    if (c_.take("in")) module = c_.string();
    std::vector<std::unique_ptr<Graph>> bodies;
    while (c_.take("{")) bodies.push_back(body());
    Node* n = graph_->append_control(*info->op, std::move(arguments), std::move(bodies), types, at,
                                     std::move(module));
    for (size_t i = 0; i < names.size(); ++i)
      if (n->result(i) != nullptr) name_value(n->result(i), names[i]);
  }
  /// Goes to the next line that has something.
  void expect_line(const char* expected) {
    if (c_.at_end()) c_.refuse(expected);
  }
  std::unique_ptr<Graph> body() {
    constexpr int deepest = 100;
    if (++depth_ > deepest) c_.refuse("bodies that nest less deeply");
    expect_line("a body");
    c_.expect("graph");
    auto outside = std::exchange(graph_, std::make_unique<Graph>(c_.word()));
    auto values_outside = std::exchange(values_, {});
    for (expect_line("}"); !c_.take("}"); expect_line("}")) line();
    values_ = std::move(values_outside);
    --depth_;
    return std::exchange(graph_, std::move(outside));
  }
  void result(std::vector<std::string>& names, std::vector<Type>& types) {
    Type& t = types.emplace_back();
    std::string& name = names.emplace_back();
    if (c_.take("none")) {
      t.present = false;
      return;
    }
    name = c_.value_name();
    c_.expect(":");
    t = type();
  }

  /// A number, or an expression over sizes, which has a symbol somewhere.
  Argument scalar() {
    Cursor ahead = c_;
    for (const char* word : {"true", "false", "nan", "inf", "-inf"})
      if (ahead.take(word)) return c_.number();
    const char first = ahead.peek();
    if ((first < '0' || first > '9') && !ahead.next_is_digit_behind('-')) return dim();
    const Scalar number = ahead.number();
    if (ahead.peek() != ',' && ahead.peek() != ')') return dim();
    c_ = ahead;
    return number;
  }

  Argument argument(const Parameter& p) {
    if (c_.take("none")) return std::monostate();
    if (p.list) {
      if (p.kind == Kind::tensor) {
        std::vector<Value*> values;
        list([&] { values.push_back(optional_value()); });
        return values;
      }
      if (p.kind == Kind::real) {
        std::vector<double> reals;
        list([&] { reals.push_back(c_.number().to<double>()); });
        return reals;
      }
      return dim_list();
    }
    switch (p.kind) {
      case Kind::tensor:
        return value();
      case Kind::integer:
        return dim();
      case Kind::real:
        return c_.number().to<double>();
      case Kind::boolean:
        return c_.number().to<bool>();
      case Kind::scalar:
        return scalar();
      case Kind::string:
        return c_.string();
      case Kind::dtype:
        return dtype();
      default:
        c_.refuse("an argument");
    }
  }

  Cursor c_;
  const Payloads& payloads_;
  std::unique_ptr<Graph> graph_;
  int depth_ = 0;  // bodies around this place
  std::map<std::string, Value*, std::less<>> values_;
  std::map<std::string, Dim, std::less<>> symbols_;
};

}  // namespace

std::unique_ptr<Graph> parse(std::string_view text, const Payloads& payloads) {
  return Parser(text, payloads).run();
}

Dim parse_dim(std::string_view text, const std::function<Dim(std::string_view)>& symbol) {
  // parentheses and signs nest as calls; the text may come from a file that nobody trusts
  constexpr size_t longest = 1000;
  if (text.size() > longest)
    throw ExportError("an expression over sizes has " + std::to_string(text.size()) +
                      " characters; at most " + std::to_string(longest) + " are possible");
  Cursor c(text);
  const Dim d = read_dim(c, symbol);
  if (!c.at_end()) c.refuse("the end of the expression");
  return d;
}

}  // namespace taper::ir
