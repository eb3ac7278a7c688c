#include "taper/exporter/serve/engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace taper::serve {

using llm::Finish;

namespace {

// To take over fewer tokens than this takes about as long as to read them.
constexpr int64_t least_shared = 8;

Span<const llm::TokenId> span_of(const std::vector<llm::TokenId>& ids) {
  return {ids.data(), static_cast<index_t>(ids.size())};
}

}  // namespace

/// A sequence, and the text that it is used for.
struct Engine::Place {
  explicit Place(llm::Sequence made) : sequence(std::move(made)) {}

  bool is_free() const { return job == nullptr; }
  bool reads_prompt() const { return !is_free() && generation->reads_prompt(); }
  const TextRequest& request() const { return job->request_; }
  /// The tokens of its prompt that the sequence has read.
  int64_t known(const TextRequest& of) const {
    return sequence.adapter() == of.adapter ? sequence.known_prefix(span_of(of.prompt)) : 0;
  }

  llm::Sequence sequence;
  std::shared_ptr<Job> job;
  std::optional<llm::Generation> generation;
  uint64_t ended = 0;  ///< which of all texts ended here last
};

Engine::Engine(llm::LanguageModel model, const EngineOptions& options)
    : model_(std::move(model)), options_(options) {
  std::string why;
  Result<llm::Sequence> first = llm::Sequence::create(model_, &why);
  if (!first.ok()) throw std::runtime_error(why);
  places_.push_back(std::make_unique<Place>(std::move(first.value())));
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  work_.notify_all();
  thread_.join();
}

std::optional<std::vector<std::shared_ptr<Job>>> Engine::submit(std::vector<TextRequest> requests) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(options_.seconds));
  std::vector<std::shared_ptr<Job>> jobs;
  for (TextRequest& request : requests)
    jobs.push_back(std::make_shared<Job>(std::move(request), deadline));
  const std::lock_guard lock(mutex_);
  ++counts_.requests;
  // texts that find a free sequence do not wait
  const size_t free = static_cast<size_t>(std::max(0, options_.sequences - counts_.running));
  if (queue_.size() + jobs.size() > static_cast<size_t>(options_.waiting) + free) {
    ++counts_.refused;
    return std::nullopt;
  }
  queue_.insert(queue_.end(), jobs.begin(), jobs.end());
  work_.notify_all();
  return jobs;
}

EngineCounts Engine::counts() const {
  const std::lock_guard lock(mutex_);
  EngineCounts counts = counts_;
  counts.waiting = static_cast<int>(queue_.size());
  return counts;
}

void Engine::run() {
  while (admit()) {
    write_tokens();
    read_a_prompt();
  }
  for (const auto& place : places_)
    if (!place->is_free()) place->job->end(Finish::cancelled, "");
}

// A token of each text whose prompt was read. Those that end, end here, too.
void Engine::write_tokens() {
  std::vector<Place*> writing;
  for (const auto& place : places_) {
    if (place->is_free()) continue;
    Job& job = *place->job;
    if (job.is_late()) job.cancel();
    if (job.cancelled_ || !place->reads_prompt()) writing.push_back(place.get());
  }
  step(writing);
}

// A piece of a prompt. The prompts take turns.
void Engine::read_a_prompt() {
  for (size_t i = 1; i <= places_.size(); ++i) {
    const size_t at = (turn_ + i) % places_.size();
    Place& place = *places_[at];
    if (!place.reads_prompt() || waits_for_another(place)) continue;
    turn_ = at;
    share_prompts(place);
    return step({&place});
  }
}

// Whether another place reads what this one needs, too, and is ahead. The one that is furthest
// ahead waits for nobody.
bool Engine::waits_for_another(const Place& place) const {
  if (!model_.text().rewinds) return false;
  const int64_t own = place.sequence.position();
  bool is_later = false;
  for (const auto& other : places_) {
    if (other.get() == &place) {
      is_later = true;
      continue;
    }
    const int64_t read = other->sequence.position();
    if (!other->reads_prompt() || read < own || (read == own && is_later)) continue;
    if (other->request().adapter != place.request().adapter) continue;
    const auto& prompt = other->request().prompt;
    const auto common = std::ranges::mismatch(prompt, place.request().prompt).in1 - prompt.begin();
    if (common - read >= least_shared) return true;
  }
  return false;
}

// Takes over what any other place has read of the prompt.
void Engine::share_prompts(Place& place) {
  const TextRequest& request = place.request();
  Place* best = &place;
  for (const auto& other : places_)
    if (other->known(request) > best->known(request)) best = other.get();
  if (best->known(request) - place.sequence.position() >= least_shared)
    place.generation->share_prompt(best->sequence);
}

// Gives free sequences to those who wait. If there is nothing to do, waits. False: the engine ends.
bool Engine::admit() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [&] { return stops_ || counts_.running > 0 || !queue_.empty(); });
  forget_the_gone();
  while (!stops_ && !queue_.empty()) {
    Place* place = free_place(queue_.front()->request_);
    if (place == nullptr) break;
    begin(*place, std::move(queue_.front()));
    queue_.pop_front();
  }
  if (stops_)
    for (const auto& job : queue_) job->end(Finish::cancelled, "");
  return !stops_;
}

// Those who wait no longer, or have waited too long.
void Engine::forget_the_gone() {
  std::erase_if(queue_, [&](const std::shared_ptr<Job>& job) {
    const bool waits = !job->cancelled_, late = job->is_late();
    if (waits && !late) return false;
    ++counts_.cancelled;
    if (waits) job->end(Finish::failed, "the request waited too long");
    return true;
  });
}

// The free sequence that the prompt continues, and that has little to forget. Else a new one; else
// the one whose text ended first.
Engine::Place* Engine::free_place(const TextRequest& request) {
  Place *continued = nullptr, *oldest = nullptr;
  int64_t most = -1;
  for (const auto& place : places_) {
    if (!place->is_free()) continue;
    if (oldest == nullptr || place->ended < oldest->ended) oldest = place.get();
    const int64_t known = place->known(request);
    if (known > most && place->sequence.position() - known <= options_.prompt_piece)
      continued = place.get(), most = known;
  }
  if (continued != nullptr && (most > 0 || continued->sequence.position() == 0)) return continued;
  if (static_cast<int>(places_.size()) == options_.sequences) return oldest;
  Result<llm::Sequence> made = llm::Sequence::create(model_);
  if (!made.ok()) return oldest;  // no memory for one more
  return places_.emplace_back(std::make_unique<Place>(std::move(made.value()))).get();
}

void Engine::begin(Place& place, std::shared_ptr<Job> job) {
  try {
    llm::GenerateOptions options = job->request_.options;
    options.prompt_piece = options_.prompt_piece;
    (void)place.sequence.use_adapter(job->request_.adapter);  // it was looked up
    place.generation.emplace(place.sequence, job->request_.prompt, std::move(options));
  } catch (const std::exception& e) {  // no memory for it
    ++counts_.failed;
    return job->end(Finish::failed, e.what());
  }
  place.job = std::move(job);
  ++counts_.running;
}

void Engine::step(const std::vector<Place*>& places) {
  std::vector<llm::Generation*> generations;
  for (Place* place : places) generations.push_back(&*place->generation);
  llm::step_each(generations);
  for (Place* place : places) {
    if (place->generation->finish() != Finish::none)
      settle(*place);
    else
      place->job->add(*place->generation);
  }
}

// The text has ended. The sequence is free before its owner hears of it.
void Engine::settle(Place& place) {
  const llm::Generation generation = std::move(*place.generation);
  const std::shared_ptr<Job> job = std::move(place.job);
  place.generation.reset(), place.job.reset();
  place.ended = ++ended_;
  const llm::GenerationStatistics& s = generation.statistics();
  {
    const std::lock_guard lock(mutex_);
    --counts_.running;
    counts_.cancelled += generation.finish() == Finish::cancelled;
    counts_.failed += generation.finish() == Finish::failed;
    counts_.prompt_tokens += static_cast<uint64_t>(s.prompt_tokens);
    counts_.cached_tokens += static_cast<uint64_t>(s.cached_tokens);
    counts_.answer_tokens += static_cast<uint64_t>(s.answer_tokens);
  }
  job->add(generation);
}

}  // namespace taper::serve
