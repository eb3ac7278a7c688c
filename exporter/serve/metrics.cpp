#include "taper/exporter/serve/metrics.h"

namespace taper::serve {

std::string metrics_text(const EngineCounts& counts) {
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, uint64_t value) {
    const std::string full = std::string("taper_") + name;
    text += "# HELP " + full + " " + help + "\n# TYPE " + full + " " + type + "\n" + full + " " +
            std::to_string(value) + "\n";
  };
  add("requests_total", "counter", "Requests that were understood.", counts.requests);
  add("requests_refused_total", "counter", "Requests that came while too many waited.",
      counts.refused);
  add("texts_cancelled_total", "counter",
      "Texts that ended because the client or the time was gone.", counts.cancelled);
  add("texts_failed_total", "counter", "Texts that ended with an error.", counts.failed);
  add("prompt_tokens_total", "counter", "Tokens of prompts.", counts.prompt_tokens);
  add("prompt_tokens_cached_total", "counter", "Of these, tokens that were not read again.",
      counts.cached_tokens);
  add("answer_tokens_total", "counter", "Tokens that were written.", counts.answer_tokens);
  add("texts_running", "gauge", "Texts that are being written.",
      static_cast<uint64_t>(counts.running));
  add("texts_waiting", "gauge", "Texts that wait for a sequence.",
      static_cast<uint64_t>(counts.waiting));
  return text;
}

}  // namespace taper::serve
