#include "taper/runtime/extension/module/message.h"

#include <cstring>

#include "taper/runtime/core/dtype.h"

namespace taper {
namespace {

// For an error without a text.
const char* words_of(Error error) {
  switch (error) {
    case Error::ok:
      return "nothing is wrong";
    case Error::invalid_program:
      return "the program is damaged";
    case Error::invalid_argument:
      return "an argument does not fit";
    case Error::missing_kernel:
      return "no kernel fits";
    case Error::out_of_memory:
      return "there is not enough memory";
    case Error::not_supported:
      return "this build does not support it";
    case Error::limit_reached:
      return "a limit was reached";
    case Error::device_failed:
      return "the device failed";
    case Error::busy:
      return "it is in use";
  }
  return "it failed";
}

}  // namespace

std::string describe(const ErrorInfo& info, const char* input) {
  std::string place;
  const auto add = [&place](const std::string& part) {
    place += (place.empty() ? "" : ", ") + part;
  };
  if (info.source != nullptr) add(info.source);
  if (info.instruction >= 0) add("instruction " + std::to_string(info.instruction));
  // outside an instruction it is an input of the method
  if (info.argument >= 0)
    add((info.instruction >= 0 ? "argument " : "input ") + std::to_string(info.argument));
  const bool names_subject =
      info.message != nullptr && std::strstr(info.message, "{subject}") != nullptr;
  const char* const first = names_subject || info.subject == nullptr ? input : info.subject;
  std::string text = first != nullptr ? first : place;
  if (first != nullptr && !place.empty()) text += " (" + place + ")";
  if (!text.empty()) text += ": ";
  if (info.message == nullptr) return text + words_of(info.error);
  int next = 0;
  for (const char* c = info.message; *c != '\0'; ++c) {
    if (next < 3 && std::strncmp(c, "{}", 2) == 0)
      text += std::to_string(info.values[next++]), c += 1;
    else if (next < 3 && std::strncmp(c, "{dtype}", 7) == 0)
      text += name_of(static_cast<DType>(info.values[next++])), c += 6;
    else if (info.subject != nullptr && std::strncmp(c, "{subject}", 9) == 0)
      text += info.subject, c += 8;
    else
      text += *c;
  }
  return text;
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

}  // namespace taper
