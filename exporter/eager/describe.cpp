#include "taper/exporter/eager/describe.h"

#include "taper/exporter/eager/text.h"

namespace taper::eager {
namespace {

/// The tensors of a call: "input (2, 3), index (4) i64". f32 is omitted unless `all_dtypes`.
std::string describe_tensors(const OperatorInfo& info, const Boxed* arguments, bool all_dtypes) {
  std::string text;
  const auto add = [&](const std::string& name, const Tensor& t) {
    text += (text.empty() ? "" : ", ") + name + " " + to_string(t.sizes()) +
            (t.dtype() == DType::f32 && !all_dtypes ? ""
                                                    : std::string(" ") + taper::name_of(t.dtype()));
  };
  for (int i = 0; i < info.argument_count; ++i) {
    const Boxed& b = arguments[i];
    if (b.kind != Kind::tensor || !b.present) continue;
    const std::string name(info.arguments[i].name);
    for (uint32_t k = 0; k < b.size; ++k)
      if (b.tensors[k].defined())
        add(b.list ? name + "[" + std::to_string(k) + "]" : name, b.tensors[k]);
  }
  return text;
}

/// The numbers of a call without tensors: "start 0, end 5, step -1".
std::string describe_numbers(const OperatorInfo& info, const Boxed* arguments) {
  std::string text;
  for (int i = 0; i < info.argument_count; ++i) {
    const Boxed& b = arguments[i];
    std::string value;
    if (b.present && b.kind == Kind::integer)
      value = !b.list      ? b.dim.to_string()
              : b.symbolic ? to_string(Dims(b.dims, b.dims + b.size))
                           : to_string(Dims(b.integers, b.integers + b.size));
    else if (b.present && b.kind == Kind::real && !b.list)
      value = to_text(b.real);
    if (!value.empty())
      text += (text.empty() ? "" : ", ") + std::string(info.arguments[i].name) + " " + value;
  }
  return text;
}

/// The string arguments: ", approximate \"cubic\"".
std::string describe_texts(const OperatorInfo& info, const Boxed* arguments) {
  std::string text;
  for (int i = 0; i < info.argument_count; ++i)
    if (const Boxed& b = arguments[i]; b.present && b.kind == Kind::string)
      text +=
          ", " + std::string(info.arguments[i].name) + " \"" + std::string(b.text, b.size) + "\"";
  return text;
}

bool speaks_of_dtypes(const std::string& what) {
  for (const char* word : {"dtype", "i64", "i32", "bool", "floating", "integer"})
    if (what.find(word) != std::string::npos) return true;
  return false;
}

std::string compose(const OperatorInfo& info, const Boxed* arguments, const std::string& what) {
  std::string given = describe_tensors(info, arguments, speaks_of_dtypes(what));
  if (given.empty())
    given = describe_numbers(info, arguments);
  else
    given += describe_texts(info, arguments);
  return std::string(info.name) + ": " + what + (given.empty() ? "" : " for " + given);
}
std::string fill(const char* message, const int64_t* values) {
  return message ? format_message(message, {Dim(values[0]), Dim(values[1]), Dim(values[2])})
                 : "the arguments do not fit";
}

}  // namespace

std::string describe_arguments(const OperatorInfo& info, const Boxed* arguments) {
  return describe_tensors(info, arguments, false);
}

std::string describe_absence(const OperatorInfo& info) {
  return std::string(info.name) + ": this operator has no kernel";
}
std::string describe_failure(const OperatorInfo& info, const Boxed* arguments,
                             const Facts<Extent>& facts) {
  return compose(info, arguments, fill(facts.message, facts.values));
}
std::string describe_failure(const OperatorInfo& info, const Boxed* arguments,
                             const Facts<Dim>& facts) {
  return compose(info, arguments,
                 facts.message ? format_message(facts.message,
                                                {facts.values[0], facts.values[1], facts.values[2]})
                               : "the arguments do not fit");
}
std::string describe_failure(const OperatorInfo& info, const Boxed* arguments,
                             const ErrorInfo& failure, Error error) {
  return compose(info, arguments,
                 failure.message != nullptr      ? fill(failure.message, failure.values)
                 : error == Error::out_of_memory ? "there is not enough memory"
                                                 : "the kernel does not accept the arguments");
}

}  // namespace taper::eager
