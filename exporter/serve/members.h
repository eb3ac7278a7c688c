// Reads the members of a request, one by one.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>

#include "taper/exporter/serve/api.h"

namespace taper::serve {

[[noreturn]] void refuse(const std::string& parameter, const std::string& why);

/// The members of an object. What nobody asked for at the end is refused.
class Members {
 public:
  explicit Members(const json& object) : object_(object) {}

  /// nullptr: it is absent or null.
  const json* find(const std::string& name);
  double number(const std::string& name, double missing, double least, double most);
  int64_t integer(const std::string& name, int64_t missing, int64_t least, int64_t most);
  bool flag(const std::string& name, bool missing);
  std::string text_or(const std::string& name, const std::string& missing);
  /// A member that changes nothing here.
  void ignore(std::initializer_list<const char*> names);
  /// A member that may only have the value that changes nothing.
  void only(const std::string& name, const json& neutral);
  void refuse_others() const;

 private:
  const json& object_;
  std::set<std::string> known_;
};

/// The object of a request. Throws ApiError if it is none, or nested too deeply.
json parse_request(const std::string& body);
/// The request may name the model, and then rightly.
/// Returns the adapter whose name the request gives in place of the model's; "": none.
std::string check_model(Members& request, const std::string& model_id,
                        const std::vector<std::string>& adapters = {});

/// A text, tokens, or a list of either, as the member `name` has them.
std::vector<std::vector<llm::TokenId>> token_lists(Members& request, const std::string& name,
                                                   const llm::Tokenizer& tokenizer);

/// What a conversation asks for: read_chat.cpp.
struct ChatPrompt {
  std::vector<llm::TokenId> ids;
  llm::AnswerStyle answer;
  std::string schema;       ///< what the answer must be; empty: any text
  bool calls_once = false;  ///< only the first call of an answer counts
};
ChatPrompt read_chat(Members& request, const llm::LanguageModel& model);

}  // namespace taper::serve
