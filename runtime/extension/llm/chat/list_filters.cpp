#include <algorithm>

#include "taper/runtime/extension/llm/chat/filters.h"
#include "taper/runtime/extension/llm/chat/text_functions.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::chat {
namespace {

using In = const ArgumentReader&;

// "a.b.0" of a value; undefined if a part is missing.
Value member_of(const Value& value, const std::string& path) {
  Value now = value;
  size_t begin = 0;
  while (begin <= path.size() && !now.is_undefined()) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const bool number = !name.empty() && name.size() < 10 &&
                        name.find_first_not_of("0123456789") == std::string::npos;
    now = number ? item(now, static_cast<int64_t>(std::stoll(name))) : item(now, name);
    begin = end + 1;
  }
  return now;
}

// What a value is sorted and compared by: texts without regard to case, unless it is asked for.
Value key_of(const Value& value, const std::string& attribute, bool case_sensitive) {
  const Value key = attribute.empty() ? value : member_of(value, attribute);
  return key.is_string() && !case_sensitive ? Value(lower(key.string())) : key;
}

Value length(const Value& v, In) {
  if (v.is_string()) return static_cast<int64_t>(count_characters(v.string()));
  if (v.is_sequence()) return static_cast<int64_t>(v.list().size());
  if (v.is_dict()) return static_cast<int64_t>(v.dict().size());
  if (v.is_undefined()) return 0;
  refuse(std::string("object of type '") + type_name(v) + "' has no len()");
}

Value list(const Value& v, In) { return elements_of(v); }

Value first(const Value& v, In) {
  const List all = elements_of(v);
  return all.empty() ? Value::undefined("No first item, sequence was empty.") : all.front();
}

Value last(const Value& v, In) {
  const List all = elements_of(v);
  return all.empty() ? Value::undefined("No last item, sequence was empty.") : all.back();
}

Value join(const Value& v, In in) {
  const std::string separator = in.text(0, "d", ""), attribute = in.text(1, "attribute", "");
  std::string out;
  bool starts = true;
  for (const Value& part : elements_of(v)) {
    if (!starts) out += separator;
    out += text_of(attribute.empty() ? part : member_of(part, attribute));
    starts = false;
    if (out.size() > max_text) refuse("a text becomes too long");
  }
  return out;
}

Value reverse(const Value& v, In) {
  List all = elements_of(v);
  std::reverse(all.begin(), all.end());
  if (!v.is_string()) return all;
  std::string text;
  for (const Value& character : all) text += character.string();
  return text;
}

Value sort(const Value& v, In in) {
  const bool descends = in.flag(0, "reverse", false),
             case_sensitive = in.flag(1, "case_sensitive", false);
  const std::string attribute = in.text(2, "attribute", "");
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& value : elements_of(v)) {
    keyed.emplace_back(key_of(value, attribute, case_sensitive), value);
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return descends ? less(b.first, a.first) : less(a.first, b.first);
  });
  List sorted;
  for (auto& [key, value] : keyed) sorted.push_back(std::move(value));
  return sorted;
}

Value extreme(const Value& v, In in, bool largest) {
  const bool case_sensitive = in.flag(0, "case_sensitive", false);
  const std::string attribute = in.text(1, "attribute", "");
  const List all = elements_of(v);
  if (all.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const Value* best = &all[0];
  for (const Value& value : all) {
    const Value a = key_of(value, attribute, case_sensitive),
                b = key_of(*best, attribute, case_sensitive);
    if (largest ? less(b, a) : less(a, b)) best = &value;
  }
  return *best;
}
Value max(const Value& v, In in) { return extreme(v, in, true); }
Value min(const Value& v, In in) { return extreme(v, in, false); }

Value sum(const Value& v, In in) {
  const std::string attribute = in.text(0, "attribute", "");
  Value total = in.get(1, "start", 0);
  for (const Value& value : elements_of(v)) {
    total = binary("+", total, attribute.empty() ? value : member_of(value, attribute));
  }
  return total;
}

Value unique(const Value& v, In in) {
  const bool case_sensitive = in.flag(0, "case_sensitive", false);
  const std::string attribute = in.text(1, "attribute", "");
  List keys, kept;
  for (const Value& value : elements_of(v)) {
    const Value key = key_of(value, attribute, case_sensitive);
    if (contains(keys, key)) continue;
    keys.push_back(key);
    kept.push_back(value);
  }
  return kept;
}

Value items(const Value& v, In) {
  List pairs;
  if (v.is_undefined()) return pairs;
  if (!v.is_dict()) refuse("Can only get item pairs from a mapping.");
  for (const auto& [key, value] : v.dict()) pairs.push_back(Value::tuple({key, value}));
  return pairs;
}

Value sort_dict(const Value& v, In in) {
  const bool case_sensitive = in.flag(0, "case_sensitive", false),
             descends = in.flag(2, "reverse", false);
  const size_t by = in.text(1, "by", "key") == "value" ? 1 : 0;
  List pairs = items(v, in).list();
  std::stable_sort(pairs.begin(), pairs.end(), [&](const Value& a, const Value& b) {
    const Value x = key_of(a.list()[by], "", case_sensitive),
                y = key_of(b.list()[by], "", case_sensitive);
    return descends ? less(y, x) : less(x, y);
  });
  return pairs;
}

Value group_by(const Value& v, In in) {
  const std::string attribute = in.need(0, "attribute").string();
  std::vector<std::pair<Value, List>> groups;
  for (const Value& value : elements_of(v)) {
    const Value key = member_of(value, attribute);
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return equal(group.first, key); });
    if (found == groups.end()) {
      groups.push_back({key, {value}});
    } else {
      found->second.push_back(value);
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return less(a.first, b.first); });
  List result;
  for (auto& [key, members] : groups) result.push_back(Value::tuple({key, std::move(members)}));
  return result;
}

size_t count_of(In in, const char* name) {
  const int64_t count = in.integer(0, name, 0);
  if (count < 1 || count > static_cast<int64_t>(max_list)) refuse("the count is not above 0");
  return static_cast<size_t>(count);
}

Value batch(const Value& v, In in) {
  const size_t size = count_of(in, "linecount");
  const Value fill = in.get(1, "fill_with", Value::none());
  List batches, now;
  for (const Value& value : elements_of(v)) {
    now.push_back(value);
    if (now.size() == size) batches.emplace_back(std::exchange(now, {}));
  }
  if (now.empty()) return batches;
  if (!fill.is_none()) now.resize(size, fill);
  batches.emplace_back(std::move(now));
  return batches;
}

Value slices(const Value& v, In in) {
  const size_t count = count_of(in, "slices");
  const Value fill = in.get(1, "fill_with", Value::none());
  const List all = elements_of(v);
  const size_t each = all.size() / count, longer = all.size() % count;
  List result;
  for (size_t i = 0, at = 0; i < count; ++i) {
    const size_t size = each + (i < longer);
    List part(all.begin() + static_cast<ptrdiff_t>(at),
              all.begin() + static_cast<ptrdiff_t>(at + size));
    if (!fill.is_none() && i >= longer && longer > 0) part.push_back(fill);
    result.emplace_back(std::move(part));
    at += size;
  }
  return result;
}

// Arguments from `place` on.
Arguments rest_of(In in, size_t place) {
  Arguments rest;
  for (Value value; !(value = in.get(place, "")).is_undefined(); ++place) {
    rest.positional.push_back(value);
  }
  return rest;
}

Value map(const Value& v, In in) {
  List mapped;
  const Value attribute = in.get(~size_t{0}, "attribute");
  for (const Value& value : elements_of(v)) {
    if (attribute.is_undefined()) {
      mapped.push_back(apply_filter(text_of(in.need(0, "filter")), value, rest_of(in, 1)));
      continue;
    }
    const Value member = member_of(value, text_of(attribute));
    mapped.push_back(member.is_undefined() ? in.get(~size_t{0}, "default", member) : member);
  }
  return mapped;
}

// Keeps the elements for which a test holds, or does not.
List chosen(const Value& v, In in, bool by_attribute, bool wanted) {
  const size_t place = by_attribute ? 1 : 0;
  const std::string attribute = by_attribute ? text_of(in.need(0, "attribute")) : "";
  const Value test = in.get(place, "test");
  List kept;
  for (const Value& value : elements_of(v)) {
    const Value tested = by_attribute ? member_of(value, attribute) : value;
    const bool holds = test.is_undefined()
                           ? is_true(tested)
                           : apply_test(text_of(test), tested, rest_of(in, place + 1));
    if (holds == wanted) kept.push_back(value);
  }
  return kept;
}
Value select(const Value& v, In in) { return chosen(v, in, false, true); }
Value reject(const Value& v, In in) { return chosen(v, in, false, false); }
Value select_by_attribute(const Value& v, In in) { return chosen(v, in, true, true); }
Value reject_by_attribute(const Value& v, In in) { return chosen(v, in, true, false); }

}  // namespace

void add_list_filters(std::map<std::string, Filter>& filters) {
  filters.insert({{"length", length},
                  {"count", length},
                  {"list", list},
                  {"first", first},
                  {"last", last},
                  {"join", join},
                  {"reverse", reverse},
                  {"sort", sort},
                  {"max", max},
                  {"min", min},
                  {"sum", sum},
                  {"unique", unique},
                  {"items", items},
                  {"dictsort", sort_dict},
                  {"groupby", group_by},
                  {"batch", batch},
                  {"slice", slices},
                  {"map", map},
                  {"select", select},
                  {"reject", reject},
                  {"selectattr", select_by_attribute},
                  {"rejectattr", reject_by_attribute}});
}

}  // namespace taper::llm::chat
