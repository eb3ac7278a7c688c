#include "taper/exporter/importers/pt2/json.h"

#include <algorithm>
#include <limits>
#include <set>

#include "taper/exporter/io/array.h"

namespace taper::pt2 {
namespace {
// A subgraph is 8 levels deeper than the graph that contains it.
constexpr int max_nesting = 512;
}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& file,
                          const std::vector<std::string_view>& dropped) {
  std::vector<std::set<std::string>> keys;  // keys of the objects that are still open
  using Event = nlohmann::json::parse_event_t;
  const auto keep = [&](int depth, Event event, nlohmann::json& parsed) {
    if (depth > max_nesting)
      throw io::FileError(file + ": its JSON nests deeper than " + std::to_string(max_nesting) +
                          " levels");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second)
        throw io::FileError(file + ": key \"" + key + "\" stands twice in one object");
      return std::ranges::find(dropped, key) == dropped.end();
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, keep);
  } catch (const nlohmann::json::exception& e) {
    throw io::FileError(file + ": its JSON is damaged: " + e.what());
  }
}

std::string Json::path() const {
  if (parent_ == nullptr) return "";
  std::string above = parent_->path();
  if (key_ == nullptr) return above + "[" + std::to_string(index_) + "]";
  if (above.empty()) return key_;
  return above.append(".").append(key_);
}

void Json::fail(const std::string& what) const {
  const std::string where = path();
  throw io::FileError(file_ + ": " + (where.empty() ? "" : where + ": ") + what);
}

Json Json::at(const char* key) const {
  if (!value_.is_object()) fail("must be an object");
  const auto found = value_.find(key);
  if (found == value_.end()) fail("lacks the member \"" + std::string(key) + "\"");
  return Json(*found, *this, key, 0);
}

int64_t Json::integer() const {
  if (value_.is_number_unsigned() &&
      value_.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    fail("must be an integer of 64 bits");
  if (!value_.is_number_integer()) fail("must be an integer of 64 bits");
  return value_.get<int64_t>();
}

double Json::real() const {
  if (value_.is_number()) return value_.get<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (value_ == "Infinity") return infinity;
  if (value_ == "-Infinity") return -infinity;
  if (value_ == "NaN") return std::numeric_limits<double>::quiet_NaN();
  fail("must be a number");
}

bool Json::boolean() const {
  if (!value_.is_boolean()) fail("must be true or false");
  return value_.get<bool>();
}

const std::string& Json::text() const {
  if (!value_.is_string()) fail("must be a text");
  return value_.get_ref<const std::string&>();
}

}  // namespace taper::pt2
