// Lets answers be what a JSON schema accepts.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "taper/runtime/extension/llm/grammar.h"

namespace taper::serve {

/// Makes matchers of schemas. A matcher learns while it is used, so those of the last schemas are
/// kept for the next request. Any thread may use it.
class Schemas {
 public:
  explicit Schemas(const llm::Tokenizer& tokenizer) : pool_(std::make_shared<Pool>(tokenizer)) {}

  /// A matcher for one text at a time; nullptr, and the reason in `why`, if the schema cannot be
  /// read.
  std::shared_ptr<llm::GrammarMatcher> matcher(const std::string& schema, std::string& why);

 private:
  using Matcher = std::unique_ptr<llm::GrammarMatcher>;
  struct Pool {
    explicit Pool(const llm::Tokenizer& of) : tokenizer(of) {}
    Matcher take(const std::string& schema);
    void give_back(const std::string& schema, Matcher matcher);

    const llm::Tokenizer tokenizer;
    std::mutex mutex;
    std::optional<llm::TokenTexts> texts;               ///< made when the first schema comes
    std::list<std::pair<std::string, Matcher>> unused;  ///< the last one first
  };
  std::shared_ptr<Pool> pool_;  ///< matchers that are in use come back later
};

}  // namespace taper::serve
