#include "in_double.h"

#include <stdexcept>

namespace taper::golden {

InDouble::InDouble(const std::filesystem::path& path)
    : content_(io::read_safetensors(path)),
      cases_(Json::parse(content_.metadata.at("cases"), nullptr, false)) {
  if (cases_.is_discarded())
    throw std::runtime_error(path.string() + ": the text of the cases is no JSON");
}

bool InDouble::has(const Json& golden) const {
  return cases_.contains(golden.at("id").get<std::string>());
}

std::pair<CaseFile, Json> InDouble::exact(const CaseFile& file, const Json& golden) const {
  std::pair<CaseFile, Json> made(file, golden);
  for (const auto& [key, tensor] : content_.tensors) made.first.content.tensors[key] = tensor;
  const Json& results = cases_.at(golden.at("id").get<std::string>());
  made.second["outputs"] = results.at("outputs");
  if (results.contains("grads")) made.second["grads"] = results.at("grads");
  if (results.contains("grad_grad")) made.second["grad_grad"]["grads"] = results.at("grad_grad");
  return made;
}

}  // namespace taper::golden
