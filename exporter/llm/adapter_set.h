// Several LoRA adapters of one model. Each text of a call uses one of them, or none.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/adapter.h"
#include "taper/exporter/llm/named_adapter.h"

namespace taper::llm {

class AdapterSet {
 public:
  /// Throws as `Adapter`, and ExportError if two have one name.
  explicit AdapterSet(const std::vector<NamedAdapter>& files);

  /// Whether all are of this kind of files. Throws ExportError, which names another one.
  void require_kind(bool is_gguf) const;
  /// What belongs to a matrix: that of adapter i, counted from 1, at i; zeros at 0. Undefined if no
  /// adapter has it. Lower ranks are filled up with zeros.
  LowRank of(const std::string& name, int64_t out, int64_t in);
  void require_all_used() const;

  /// i64 (batch): which adapter each text of a call uses. Whoever calls the model sets it.
  const std::shared_ptr<eager::Tensor>& chosen() const { return chosen_; }

 private:
  std::vector<Adapter> adapters_;
  std::shared_ptr<eager::Tensor> chosen_ = std::make_shared<eager::Tensor>();
};

}  // namespace taper::llm
