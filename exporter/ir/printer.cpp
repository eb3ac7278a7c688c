#include "taper/exporter/ir/printer.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <sstream>

namespace taper::ir {
namespace {

std::string quote(std::string_view text) {
  std::string s = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    if (c == '\n')
      s += "\\n";
    else
      s += c;
  }
  return s + "\"";
}

/// The shortest text that reads back as the same number, and never as an integer.
std::string real(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char text[32];
  const std::string s(text, std::to_chars(text, text + sizeof text, v).ptr);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

std::string name(const Value* v) { return v == nullptr ? "none" : "%" + v->name; }

std::string text(const Argument& argument) {
  const auto list = [](const auto& elements, auto&& one) {
    std::string s = "[";
    for (const auto& e : elements) s += (s.size() > 1 ? ", " : "") + one(e);
    return s + "]";
  };
  return std::visit(
      [&](const auto& a) -> std::string {
        using T = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return "none";
        else if constexpr (std::is_same_v<T, Value*>)
          return name(a);
        else if constexpr (std::is_same_v<T, std::vector<Value*>>)
          return list(a, [](const Value* v) { return name(v); });
        else if constexpr (std::is_same_v<T, Dim>)
          return a.to_string();
        else if constexpr (std::is_same_v<T, std::vector<Dim>>)
          return list(a, [](Dim d) { return d.to_string(); });
        else if constexpr (std::is_same_v<T, double>)
          return real(a);
        else if constexpr (std::is_same_v<T, std::vector<double>>)
          return list(a, real);
        else if constexpr (std::is_same_v<T, bool>)
          return a ? "true" : "false";
        else if constexpr (std::is_same_v<T, Scalar>)
          return a.is_real   ? real(a.real)
                 : a.is_bool ? (a.integer != 0 ? "true" : "false")
                             : std::to_string(a.integer);
        else if constexpr (std::is_same_v<T, std::string>)
          return quote(a);
        else
          return name_of(a);
      },
      argument);
}

std::string typed(const Value* v) {
  return v == nullptr ? "none" : name(v) + ": " + to_string(v->type);
}

const char* kind_name(StateKind kind) {
  constexpr const char* names[] = {"parameter", "buffer", "optimizer", "random", "cache"};
  return names[static_cast<int>(kind)];
}

void print_binding(std::ostream& out, const SymbolBinding& s) {
  out << "bind " << s.symbol << " = ";
  switch (s.source) {
    case SymbolSource::input_extent:
      out << "extent " << s.second << " of input " << s.first;
      break;
    case SymbolSource::input_number:
      out << "input " << s.first;
      break;
    case SymbolSource::element:
      out << "element " << s.second << " of " << name(s.value);
      break;
    case SymbolSource::kernel_extent:
      out << "extent " << s.second << " written to " << name(s.value);
      break;
  }
  out << '\n';
}

std::string head_text(const Node& node) {
  std::string s = std::string(name_of(*node.op)) + "(";
  for (size_t i = 0; i < node.arguments.size(); ++i)
    s += (i > 0 ? ", " : "") + text(node.arguments[i]);
  return s + ")";
}
std::string bodies_text(const Node& node) {
  std::string s;
  for (const auto& body : node.bodies) s += " {\n" + to_string(*body) + "}";
  return s;
}

}  // namespace

std::string call_text(const Node& node) { return head_text(node) + bodies_text(node); }

std::string to_string(const Node& node) {
  std::string s;
  for (const auto& r : node.results) s += (s.empty() ? "" : ", ") + typed(r.get());
  s += (s.empty() ? "" : " = ") + head_text(node);
  if (node.location.known())
    s += "  @ " + quote(node.location.file) + " " + std::to_string(node.location.line) + " " +
         quote(node.location.function);
  if (!node.module.empty()) s += " in " + quote(node.module);
  return s + bodies_text(node);
}

std::ostream& operator<<(std::ostream& out, const Graph& g) {
  out << "graph " << g.name() << '\n';
  for (const SymbolBinding& s : g.symbols())
    out << "symbol " << s.symbol << " in [" << s.symbol.lower() << ", " << s.symbol.upper()
        << "]\n";
  for (const Input& in : g.inputs())
    out << "input " << quote(in.name) << " = "
        << (in.value ? typed(in.value.get()) : in.number.to_string()) << '\n';
  for (const State& s : g.states())
    out << "state " << quote(s.path) << " = " << typed(s.value.get()) << ' ' << kind_name(s.kind)
        << (s.trainable ? " trainable" : "") << ' '
        << (s.initial != nullptr ? digest(*s.initial) : "zeros") << '\n';
  for (const Constant& c : g.constants())
    out << "constant " << quote(c.path) << " = " << typed(c.value.get()) << ' '
        << digest(*c.payload) << '\n';
  for (const Node& n : g.nodes()) out << to_string(n) << '\n';
  for (const Output& o : g.outputs())
    out << "output " << quote(o.name) << " = "
        << (o.value != nullptr ? name(o.value) : o.number.to_string()) << '\n';
  for (const Write& w : g.writes())
    out << "write " << quote(w.state->path) << " = " << name(w.value) << '\n';
  for (const SymbolBinding& s : g.symbols()) print_binding(out, s);
  constexpr const char* signs[] = {"==", "!=", "<", "<="};
  for (const Check& c : g.checks())
    out << "check " << c.left << ' ' << signs[static_cast<int>(c.comparison)] << ' ' << c.right
        << ' ' << quote(c.message) << '\n';
  return out;
}

std::string to_string(const Graph& graph) {
  std::ostringstream out;
  out << graph;
  return out.str();
}

std::string digest(const Payload& p) {
  uint64_t h = 14695981039346656037ull;
  const auto mix = [&](uint64_t v) { h = (h ^ v) * 1099511628211ull, h ^= h >> 32; };
  mix(static_cast<uint64_t>(p.dtype));
  if (p.layout != Layout::dense) mix(static_cast<uint64_t>(p.layout) << 32);
  for (int64_t n : p.sizes) mix(static_cast<uint64_t>(n));
  for (size_t i = 0; i < p.size_bytes; ++i) mix(static_cast<uint64_t>(p.bytes.get()[i]));
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
  return text;
}

Payloads payloads_of(const Graph& graph) {
  Payloads payloads;
  for_each_graph(graph, [&](const Graph& g) {
    for (const Constant& c : g.constants()) payloads.emplace(digest(*c.payload), c.payload);
    for (const State& s : g.states())
      if (s.initial != nullptr) payloads.emplace(digest(*s.initial), s.initial);
  });
  return payloads;
}

}  // namespace taper::ir
