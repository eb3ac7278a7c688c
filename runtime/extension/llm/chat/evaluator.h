#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "taper/runtime/extension/llm/chat/syntax.h"

namespace taper::llm::chat {

/// Names and their values; those of the scope around it count where it has none.
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}
  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
      const auto found = scope->values_.find(name);
      if (found != scope->values_.end()) return &found->second;
    }
    return nullptr;
  }
  const Scope& outermost() const { return outer_ == nullptr ? *this : outer_->outermost(); }

 private:
  const Scope* outer_;
  std::unordered_map<std::string, Value> values_;
};

/// Runs a template. It ends with a Failure if the template takes too many steps, nests calls too
/// deep, or makes more text than anyone reads.
class Evaluator {
 public:
  /// Renders a block; `scope` gets what it sets.
  std::string render(const Block& block, Scope& scope);

  Value evaluate(const Expression& node, Scope& scope);

 private:
  Value evaluate_node(const Expression& node, Scope& scope);
  enum class Flow : uint8_t { on, leave, next };
  class Depth;
  class Nesting;

  Flow run(const Block& block, Scope& scope, std::string& out);
  Flow run(const Statement& statement, Scope& scope, std::string& out);
  Flow run_for(const Statement& statement, Scope& scope, std::string& out);
  void run_set(const Statement& statement, Scope& scope);
  void define_macro(const Statement& statement, Scope& scope);
  void run_call_block(const Statement& statement, Scope& scope, std::string& out);
  Value macro_of(const Parameters& parameters, const Block& body, const std::string& name,
                 const Scope& scope);
  std::string capture(const Block& block, Scope& scope);
  void append(std::string& out, std::string_view text);

  Value evaluate_call(const Expression& node, Scope& scope);
  Value evaluate_filter(const Expression& node, const Value* input, Scope& scope);
  Value evaluate_comparison(const Expression& node, Scope& scope);
  Value evaluate_unary(const Expression& node, Scope& scope);
  Value evaluate_dict(const Expression& node, Scope& scope);
  List evaluate_all(const Expression& node, size_t first, Scope& scope);
  Arguments arguments_of(const Expression& node, size_t first, Scope& scope);
  void count_steps(size_t count);

  int64_t steps_ = 0;
  int depth_ = 0, nesting_ = 0;
  size_t written_ = 0;
};

}  // namespace taper::llm::chat
