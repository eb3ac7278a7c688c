// Language models as programs. The method `forward` takes any number of new tokens at a position:
//
//   ids i64 (batch, n), start i64 (batch) -> logits f32 (batch, 1, vocabulary)
//
// n is at most `chunk`; a longer text goes in by pieces. Caches are states of the session. `start`
// is a value: a new token prepares nothing again, and a rewind is a smaller start.
#pragma once
#include <filesystem>
#include <memory>

#include "taper/exporter/exporter.h"
#include "taper/exporter/llm/encoder.h"
#include "taper/exporter/llm/golden.h"

namespace taper::llm {

struct ProgramOptions {
  int64_t chunk = 512;      ///< the most tokens of a call; at most the capacity of the caches
  bool all_logits = false;  ///< adds the method `forward_all`, which gives those of every token
};

/// Traces the methods.
void add_methods(Exporter& exporter, Decoder& decoder, const ProgramOptions& options = {});

/// Traces the methods of an encoder, for up to `batch` texts of up to its longest length:
///   forward  ids, mask, types i64 (batch, n) -> last f32 (batch, n, hidden)
///   embed    ids, mask i64 (batch, n) -> embedding f32 (batch, hidden), of length 1
void add_methods(Exporter& exporter, Encoder& encoder, int64_t batch = 64);

/// Runs a program that `add_methods` made, in memory.
class ProgramRunner : public Runner {
 public:
  /// Throws ExportError with the runtime's message, as every call does.
  explicit ProgramRunner(std::vector<std::byte> program, const Threads* threads = nullptr);
  ~ProgramRunner() override;
  Tensor logits(const std::vector<int64_t>& ids, int64_t start, bool all) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::llm
