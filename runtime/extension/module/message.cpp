#include "taper/runtime/extension/module/message.h"

#include <cstring>

#include "taper/runtime/core/dtype.h"

namespace taper {

std::string describe(const ErrorInfo& info) {
  std::string text = name_of(info.error);
  std::string place;
  const auto add = [&place](const std::string& part) {
    place += (place.empty() ? "" : ", ") + part;
  };
  if (info.source != nullptr) add(info.source);
  if (info.instruction >= 0) add("instruction " + std::to_string(info.instruction));
  if (info.argument >= 0) add("argument " + std::to_string(info.argument));
  if (info.subject != nullptr || !place.empty()) text += ":";
  if (info.subject != nullptr) text += std::string(" ") + info.subject;
  if (!place.empty()) text += " (" + place + ")";
  if (info.message == nullptr) return text;
  text += ": ";
  int next = 0;
  for (const char* c = info.message; *c != '\0'; ++c) {
    if (next < 3 && std::strncmp(c, "{}", 2) == 0)
      text += std::to_string(info.values[next++]), c += 1;
    else if (next < 3 && std::strncmp(c, "{dtype}", 7) == 0)
      text += name_of(static_cast<DType>(info.values[next++])), c += 6;
    else
      text += *c;
  }
  return text;
}

}  // namespace taper
