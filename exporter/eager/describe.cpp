#include "taper/exporter/eager/describe.h"

namespace taper::eager {
namespace {

std::string compose(const OperatorInfo& info, const Boxed* arguments, const std::string& what) {
  const std::string tensors = describe_arguments(info, arguments);
  return std::string(info.name) + ": " + what + (tensors.empty() ? "" : " for " + tensors);
}
std::string fill(const char* message, const int64_t* values) {
  return message ? format_message(message, {Dim(values[0]), Dim(values[1]), Dim(values[2])})
                 : "the arguments do not fit";
}

}  // namespace

std::string describe_arguments(const OperatorInfo& info, const Boxed* arguments) {
  std::string text;
  const auto add = [&](const std::string& name, const Tensor& t) {
    text += (text.empty() ? "" : ", ") + name + " " + to_string(t.sizes()) +
            (t.dtype() == DType::f32 ? "" : std::string(" ") + taper::name_of(t.dtype()));
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
                 failure.message ? fill(failure.message, failure.values) : taper::name_of(error));
}

}  // namespace taper::eager
