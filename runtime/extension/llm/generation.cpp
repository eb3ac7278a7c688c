#include "taper/runtime/extension/llm/generation.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "taper/runtime/extension/llm/draft.h"
#include "taper/runtime/extension/llm/stop_strings.h"

namespace taper::llm {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr int64_t most_guesses = 7;

Span<const TokenId> span_of(const std::vector<TokenId>& ids) {
  return {ids.data(), static_cast<index_t>(ids.size())};
}

}  // namespace

struct Generation::Parts {
  Parts(Sequence& of, std::vector<TokenId> prompt, GenerateOptions given)
      : sequence(of),
        options(std::move(given)),
        sampler(options.sampling),
        decoder(of.model().tokenizer(), !options.shows_special_tokens),
        stops(options.stop),
        all(std::move(prompt)) {
    statistics.prompt_tokens = static_cast<int64_t>(all.size());
    statistics.cached_tokens = sequence.keep_prefix(span_of(all));
    if (options.grammar == nullptr) return;
    options.grammar->reset();
    const auto& of_model = sequence.model().text().ends;
    ends.assign(of_model.begin(), of_model.end());
  }

  void step();
  bool begin_step();
  void note_time();
  void end_step(const NextToken& read);
  /// Does a part of a step. What it throws ends the answer.
  template <class Part>
  void guard(Part part);
  index_t unread() const { return static_cast<index_t>(all.size()) - sequence.position(); }
  bool reads_prompt() const { return unread() > 1; }
  bool reads_one_token() const {
    return unread() == 1 && (options.draft == nullptr || ids.empty());
  }
  bool read();
  bool read_with_guesses();
  bool take(Result<Span<float>> rows);
  void write();
  bool write_token(Span<float> row);
  TokenId choose(Span<float> row);
  void show(const std::string& more) { piece += more, text += more; }
  void end(Finish why);
  bool is_cancelled() const { return options.cancel != nullptr && *options.cancel; }

  Sequence& sequence;
  GenerateOptions options;
  Sampler sampler;
  StreamDecoder decoder;
  StopStrings stops;
  std::vector<TokenId> all;      ///< the prompt and the answer
  std::vector<TokenId> ids;      ///< the answer
  std::vector<TokenId> ends;     ///< with a grammar: the tokens that end it
  Span<float> logits;            ///< behind what the model has read, and behind each guess
  std::vector<TokenId> guesses;  ///< what the model has read beyond `all`
  std::string piece, text, message;
  Finish finish = Finish::none;
  Error error = Error::ok;
  GenerationStatistics statistics;
  const Clock::time_point start = Clock::now();
};

void Generation::Parts::end(Finish why) {
  finish = why;
  if (why == Finish::failed) return;
  show(stops.push(decoder.finish()));
  if (stops.stopped()) finish = Finish::stop;
  show(stops.finish());
}

bool Generation::Parts::take(Result<Span<float>> rows) {
  if (rows.ok()) return logits = rows.value(), true;
  error = rows.error(), message = sequence.message();
  const bool cancelled = error == Error::limit_reached && is_cancelled();
  if (cancelled) error = Error::ok, message.clear();
  end(cancelled ? Finish::cancelled : Finish::failed);
  return false;
}

// A chunk of what the model has not read: the prompt, or the last token.
bool Generation::Parts::read() {
  guesses.clear();
  const index_t first = sequence.position(), rest = unread();
  if (rest == 1 && !ids.empty() && options.draft != nullptr && read_with_guesses()) return true;
  if (finish != Finish::none) return false;
  const int64_t most = options.prompt_piece > 0 ? options.prompt_piece : sequence.chunk();
  // too many tokens go in at once, so that `append` says so
  const index_t count = rest > sequence.room() ? rest : std::min<index_t>(rest, most);
  if (!take(sequence.append(span_of(all).part(first, count), options.cancel))) return false;
  if (ids.empty()) statistics.prompt_seconds = seconds_since(start);
  return count == rest;
}

// The last token, and what may follow it. False: there is no guess, or it failed.
bool Generation::Parts::read_with_guesses() {
  if (!sequence.model().text().rewinds) return false;
  const int64_t most = std::min<int64_t>(sequence.all_logits_chunk(), sequence.room()) - 1;
  guesses = options.draft->guess(all, std::min(most, most_guesses), options.cancel);
  if (guesses.empty()) return false;
  std::vector<TokenId> next = {all.back()};
  next.insert(next.end(), guesses.begin(), guesses.end());
  return take(sequence.append_all(span_of(next), options.cancel));
}

TokenId Generation::Parts::choose(Span<float> row) {
  if (options.grammar == nullptr) return sampler.sample(row, span_of(all));
  return options.grammar->sample(sampler, row, span_of(all), span_of(ends));
}

// False: the answer has ended.
bool Generation::Parts::write_token(Span<float> row) {
  if (options.before_token) options.before_token(row, span_of(all));
  const TokenId id = choose(row);
  if (id < 0) return end(Finish::end), false;
  ids.push_back(id), all.push_back(id);
  ++statistics.answer_tokens;
  if (options.after_token) options.after_token(id);
  if (sequence.model().ends(id)) return end(Finish::end), false;
  show(stops.push(decoder.push(id)));
  if (stops.stopped()) return end(Finish::stop), false;
  if (options.grammar != nullptr && options.grammar->is_complete()) return end(Finish::end), false;
  if (statistics.answer_tokens >= options.max_tokens) return end(Finish::max_tokens), false;
  if (static_cast<int64_t>(all.size()) > sequence.model().context())
    return end(Finish::context_full), false;
  return true;
}

// A token, and those after it that were guessed right.
void Generation::Parts::write() {
  ++statistics.answer_steps;
  const index_t rows = static_cast<index_t>(guesses.size()) + 1, width = logits.size() / rows;
  for (index_t i = 0; i < rows; ++i) {
    if (!write_token(logits.part(i * width, width))) break;
    if (i + 1 < rows && guesses[static_cast<size_t>(i)] != all.back()) break;
  }
  // the model forgets wrong guesses; it has not read the last token
  if (rows > 1) sequence.rewind(static_cast<int64_t>(all.size()) - 1);
}

// False: it ends here.
bool Generation::Parts::begin_step() {
  piece.clear();
  if (is_cancelled()) end(Finish::cancelled);
  return finish == Finish::none;
}

void Generation::Parts::step() {
  if (!begin_step()) return;
  if (read()) write();
  note_time();
}

// The last token was read together with those of other answers.
void Generation::Parts::end_step(const NextToken& read) {
  guesses.clear();
  if (take(read.error == Error::ok ? Result<Span<float>>(read.logits) : read.error)) {
    if (ids.empty()) statistics.prompt_seconds = seconds_since(start);
    write();
  }
  note_time();
}

void Generation::Parts::note_time() {
  if (!ids.empty()) statistics.answer_seconds = seconds_since(start) - statistics.prompt_seconds;
}

template <class Part>
void Generation::Parts::guard(Part part) {
  try {
    part();
  } catch (const std::exception& thrown) {
    sequence.rewind(0);  // what it has read is not known
    error = Error::out_of_memory, message = thrown.what();
    end(Finish::failed);
  }
}

Generation::Generation(Sequence& sequence, std::vector<TokenId> prompt, GenerateOptions options)
    : parts_(std::make_unique<Parts>(sequence, std::move(prompt), std::move(options))) {}
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;
Generation::~Generation() = default;

bool Generation::step() {
  if (parts_->finish != Finish::none) return parts_->piece.clear(), false;
  return parts_->step(), true;
}
bool Generation::reads_prompt() const { return parts_->reads_prompt(); }

void Generation::share_prompt(Sequence& from) {
  Parts& p = *parts_;
  if (p.finish != Finish::none || !p.reads_prompt()) return;
  const int64_t known = from.known_prefix(span_of(p.all)), own = p.sequence.position();
  if (known <= own || p.sequence.take_prefix(from, known) == 0) return;
  p.statistics.cached_tokens += known - own;
}

void step_each(Span<Generation* const> answers) {
  std::vector<Generation::Parts*> together;
  std::vector<NextToken> next;
  for (const Generation* answer : answers) {
    Generation::Parts& p = *answer->parts_;
    if (p.finish != Finish::none) {
      p.piece.clear();
    } else if (!p.reads_one_token()) {
      p.guard([&] { p.step(); });
    } else if (p.begin_step()) {
      together.push_back(&p);
      next.push_back({&p.sequence, p.all.back(), Error::ok, {}});
    }
  }
  Sequence::append_each(next);
  for (size_t i = 0; i < next.size(); ++i)
    together[i]->guard([&] { together[i]->end_step(next[i]); });
}

std::string_view Generation::piece() const { return parts_->piece; }
Finish Generation::finish() const { return parts_->finish; }
const std::string& Generation::text() const { return parts_->text; }
const std::vector<TokenId>& Generation::ids() const { return parts_->ids; }
const GenerationStatistics& Generation::statistics() const { return parts_->statistics; }
Error Generation::error() const { return parts_->error; }
const std::string& Generation::message() const { return parts_->message; }

}  // namespace taper::llm
