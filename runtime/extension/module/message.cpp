#include "taper/runtime/extension/module/message.h"

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
    if (c[0] == '{' && c[1] == '}' && next < 3)
      text += std::to_string(info.values[next++]), ++c;
    else
      text += *c;
  }
  return text;
}

}  // namespace taper
