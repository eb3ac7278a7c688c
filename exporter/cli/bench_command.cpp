#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <memory>
#include <numeric>
#include <ostream>
#include <sstream>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

struct BenchArguments {
  ModelChoice model;
  std::vector<std::string> prompts = {"512"}, generated = {"128"}, depths = {"0"};
  int64_t repetitions = 5;
};

using Clock = std::chrono::steady_clock;

std::vector<int64_t> numbers(const std::string& option, const std::vector<std::string>& texts) {
  std::vector<int64_t> values;
  for (const std::string& text : texts) {
    const bool is_number = !text.empty() && text.size() < 8 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) throw UsageError(option, "'" + text + "' is no number of tokens");
    values.push_back(std::stoll(text));
  }
  return values;
}

/// The bytes of a file, or of the weights of a folder.
uintmax_t stored_bytes(const std::filesystem::path& model) {
  if (!std::filesystem::is_directory(model)) return std::filesystem::file_size(model);
  uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(model))
    if (file.path().extension() == ".safetensors") bytes += file.file_size();
  return bytes;
}

/// Tokens a second.
struct Rate {
  double mean = 0, deviation = 0;
};

Rate rate_of(const std::vector<double>& rates) {
  const auto n = static_cast<double>(rates.size());
  const double mean = std::accumulate(rates.begin(), rates.end(), 0.0) / n;
  double squares = 0;
  for (const double rate : rates) squares += (rate - mean) * (rate - mean);
  return {mean, n > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

class Bench {
 public:
  Bench(llm::Sequence& sequence, const BenchArguments& arguments)
      : sequence_(sequence), arguments_(arguments) {}

  /// Reading `count` tokens at once, behind `depth` others.
  Rate prefill(int64_t count, int64_t depth) {
    return measure(count, depth, [&] { append(tokens(count)); });
  }
  /// Writing `count` tokens, one after the other.
  Rate decode(int64_t count, int64_t depth) {
    return measure(count, depth, [&] {
      for (const llm::TokenId id : tokens(count)) append({id});
    });
  }

 private:
  /// Any tokens cost the same.
  std::vector<llm::TokenId> tokens(int64_t count) {
    std::vector<llm::TokenId> ids;
    for (int64_t i = 0; i < count; ++i)
      ids.push_back(static_cast<llm::TokenId>((i * 7919 + 13) %
                                              sequence_.model().tokenizer().vocabulary_size()));
    return ids;
  }
  template <class Work>
  Rate measure(int64_t count, int64_t depth, Work work) {
    std::vector<double> rates;
    for (int64_t round = 0; round <= arguments_.repetitions; ++round) {
      prepare(depth);
      const auto start = Clock::now();
      work();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round > 0) rates.push_back(static_cast<double>(count) / seconds);  // the first warms up
    }
    return rate_of(rates);
  }
  /// Models that cannot rewind read the tokens before again.
  void prepare(int64_t depth) {
    sequence_.rewind(depth);
    if (sequence_.position() < depth) append(tokens(depth - sequence_.position()));
  }
  void append(const std::vector<llm::TokenId>& ids) {
    if (!sequence_.append({ids.data(), static_cast<index_t>(ids.size())}).ok())
      throw ExportError(arguments_.model.model + ": " + sequence_.message());
  }

  llm::Sequence& sequence_;
  const BenchArguments& arguments_;
};

class Table {
 public:
  Table(std::ostream& out, const std::string& model, const std::string& size)
      : out_(out), model_(model), size_(size) {
    out_ << "| " << std::left << std::setw(width()) << "model"
         << " |       size | threads | test"
         << "            |             t/s |\n| " << std::string(model_width(), '-')
         << " | ---------: | ------: | --------------- | --------------: |\n";
  }
  void row(const std::string& test, const Rate& rate) {
    const Threads* pool = eager::threads();
    std::ostringstream speed;
    speed << std::fixed << std::setprecision(2) << rate.mean << " ± " << rate.deviation;
    // ± has one byte more than columns
    out_ << "| " << std::left << std::setw(width()) << model_ << " | " << std::right
         << std::setw(10) << size_ << " | " << std::setw(7) << (pool == nullptr ? 1 : pool->count)
         << " | " << std::left << std::setw(15) << test << " | " << std::right << std::setw(16)
         << speed.str() << " |\n"
         << std::flush;
  }

 private:
  size_t model_width() const { return std::max<size_t>(model_.size(), 5); }
  int width() const { return static_cast<int>(model_width()); }
  std::ostream& out_;
  std::string model_, size_;
};

std::string test_name(const char* kind, int64_t count, int64_t depth) {
  std::string name = kind + std::to_string(count);
  if (depth > 0) name += " @ d" + std::to_string(depth);
  return name;
}

void bench(const BenchArguments& a, std::ostream& out) {
  const std::vector<int64_t> prompts = numbers("--prompt", a.prompts),
                             generated = numbers("--generate", a.generated),
                             depths = numbers("--depth", a.depths);
  if (a.repetitions < 1) throw UsageError("--repetitions", "it must be positive");
  int64_t longest = 1;
  for (const auto* list : {&prompts, &generated})
    for (const int64_t count : *list)
      for (const int64_t depth : depths) longest = std::max(longest, depth + count);

  // a program has the context that it was exported with
  ModelChoice choice = a.model;
  if (choice.context == 0 && !choice.model.ends_with(".taper")) choice.context = longest;
  const llm::LanguageModel model = choice.load();
  std::string why;
  Result<llm::Sequence> sequence = llm::Sequence::create(model, &why);
  if (!sequence.ok()) throw ExportError(choice.model + ": " + why);
  Bench measured(sequence.value(), a);
  std::filesystem::path path(choice.model);
  if (!path.has_filename()) path = path.parent_path();
  Table table(out, io::printable(path.filename().string()),
              io::bytes_text(static_cast<int64_t>(stored_bytes(path))));
  for (const int64_t depth : depths) {
    for (const int64_t count : prompts)
      if (count > 0) table.row(test_name("pp", count, depth), measured.prefill(count, depth));
    for (const int64_t count : generated)
      if (count > 0) table.row(test_name("tg", count, depth), measured.decode(count, depth));
  }
}

}  // namespace

void add_bench_command(CommandLine& line, std::ostream& out) {
  const auto arguments = std::make_shared<BenchArguments>();
  BenchArguments& a = *arguments;
  Command command = line.add("bench", "Measures how fast a language model reads and writes.");
  a.model.add_to(command);
  command.option("-p,--prompt", a.prompts, "tokens that are read at once: 128,512")
      .separated_by(',');
  command.option("-n,--generate", a.generated, "tokens that are written one by one")
      .separated_by(',');
  command.option("-d,--depth", a.depths, "tokens that the model has read before: 0,1024")
      .separated_by(',');
  command.option("-r,--repetitions", a.repetitions, "runs of each test").shows_default();
  command.does([arguments, &out] { bench(*arguments, out); });
}

}  // namespace taper::cli
