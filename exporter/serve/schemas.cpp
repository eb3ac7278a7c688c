#include "taper/exporter/serve/schemas.h"

#include <algorithm>

namespace taper::serve {
namespace {

constexpr size_t most_unused = 8;

}  // namespace

// nullptr: there is none.
Schemas::Matcher Schemas::Pool::take(const std::string& schema) {
  const std::lock_guard lock(mutex);
  const auto found = std::ranges::find(unused, schema, [](const auto& kept) { return kept.first; });
  if (found == unused.end()) return nullptr;
  Matcher matcher = std::move(found->second);
  unused.erase(found);
  return matcher;
}

void Schemas::Pool::give_back(const std::string& schema, Matcher matcher) {
  std::list<std::pair<std::string, Matcher>> old;  // is destroyed without the lock
  const std::lock_guard lock(mutex);
  unused.emplace_front(schema, std::move(matcher));
  if (unused.size() > most_unused) old.splice(old.begin(), unused, std::prev(unused.end()));
}

std::shared_ptr<llm::GrammarMatcher> Schemas::matcher(const std::string& schema, std::string& why) {
  Matcher matcher = pool_->take(schema);
  if (matcher == nullptr) {
    const Result<llm::Grammar> grammar = llm::Grammar::from_json_schema(schema, &why);
    if (!grammar.ok()) return nullptr;
    const std::lock_guard lock(pool_->mutex);
    if (!pool_->texts) pool_->texts.emplace(pool_->tokenizer);
    matcher = std::make_unique<llm::GrammarMatcher>(grammar.value(), *pool_->texts);
  }
  return {matcher.release(), [pool = pool_, schema](llm::GrammarMatcher* used) {
            pool->give_back(schema, Matcher(used));
          }};
}

}  // namespace taper::serve
