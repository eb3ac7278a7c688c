// Writes several texts at once, each in a sequence of its own. One thread computes, in rounds: a
// token of each text, with one call of the model if its program has rows for them; then a piece of
// one prompt. So a long prompt delays the others by a piece. Texts come and go between rounds.
// Requests beyond the number of sequences wait. Where prompts begin alike, one of them is read, and
// the others take over what it has read.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/generation.h"

namespace taper::serve {

/// A token with its logarithmic probability before sampling, and the likeliest ones beside it.
struct TokenChance {
  llm::TokenId id = 0;
  double log_probability = 0;
  std::vector<std::pair<llm::TokenId, double>> likeliest;
};

struct TextRequest {
  std::vector<llm::TokenId> prompt;
  std::string adapter;           ///< of the model; "": none
  llm::GenerateOptions options;  ///< its hooks and `cancel` are the engine's
  int likeliest = -1;            ///< tokens beside each one; -1: no probabilities at all
};

/// What came since the last look.
struct Progress {
  std::string text;
  std::vector<TokenChance> chances;  ///< of the tokens that came; not of one that ended the text
  llm::Finish finish = llm::Finish::none;
  llm::GenerationStatistics statistics;  ///< at the end
  std::string message;                   ///< of an error
};

/// A text that is being written. Its owner looks at it from another thread, and drops it.
class Job {
 public:
  Job(TextRequest request, std::chrono::steady_clock::time_point deadline);

  /// Waits until something came, at most so long. Returns what came, possibly nothing.
  Progress wait(std::chrono::milliseconds most);
  /// Ends the text soon.
  void cancel() { cancelled_ = true; }

 private:
  friend class Engine;
  void note_token(llm::TokenId id);
  void add(const llm::Generation& generation);
  void end(llm::Finish finish, const std::string& message);
  bool is_late() const { return std::chrono::steady_clock::now() >= deadline_; }

  TextRequest request_;
  const std::chrono::steady_clock::time_point deadline_;
  std::atomic<bool> cancelled_{false};
  std::vector<float> logits_;  ///< of the step, as the model gave them
  std::vector<TokenChance> step_;

  std::mutex mutex_;
  std::condition_variable came_;
  Progress progress_;
};

struct EngineOptions {
  int sequences = 4;      ///< texts that are written at once; each has caches of its own
  int prompt_piece = 64;  ///< tokens of a prompt that a round reads
  int waiting = 64;       ///< requests that may wait
  double seconds = 600;   ///< the longest life of a request
};

struct EngineCounts {
  uint64_t requests = 0, refused = 0, cancelled = 0, failed = 0;
  uint64_t prompt_tokens = 0, cached_tokens = 0, answer_tokens = 0;
  int running = 0, waiting = 0;
};

class Engine {
 public:
  /// Throws std::runtime_error if there is no memory for one sequence.
  Engine(llm::LanguageModel model, const EngineOptions& options);
  /// Ends all texts.
  ~Engine();
  Engine(const Engine&) = delete;

  const llm::LanguageModel& model() const { return model_; }
  /// Begins all texts of a request, or none: nullptr if too many wait already.
  std::optional<std::vector<std::shared_ptr<Job>>> submit(std::vector<TextRequest> requests);
  EngineCounts counts() const;

 private:
  struct Place;
  void run();
  bool admit();
  void forget_the_gone();
  void begin(Place& place, std::shared_ptr<Job> job);
  void write_tokens();
  void read_a_prompt();
  bool waits_for_another(const Place& place) const;
  void share_prompts(Place& place);
  void step(const std::vector<Place*>& places);
  void settle(Place& place);
  Place* free_place(const TextRequest& request);

  const llm::LanguageModel model_;
  const EngineOptions options_;
  std::vector<std::unique_ptr<Place>> places_;  ///< made when they are needed
  size_t turn_ = 0;                             ///< the place whose prompt was read last
  uint64_t ended_ = 0;                          ///< how many texts have ended

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::shared_ptr<Job>> queue_;
  EngineCounts counts_;
  bool stops_ = false;
  std::thread thread_;  // the last member, because it uses the others
};

}  // namespace taper::serve
