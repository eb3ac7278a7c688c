#include <ostream>

#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/quantization.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/tokenizer_file.h"
#include "taper/exporter/llm/transcriber.h"
#include "taper/runtime/extension/audio/log_mel.h"
#include "taper/runtime/extension/audio/wav.h"

namespace taper::cli {
namespace {

struct TranscribeArguments {
  std::string audio, model, language, lora, cache_dtype = "f32";
  bool exact = false;
};

audio::Sound sound_of(const std::string& path) {
  std::string why;
  Result<audio::Sound> sound = audio::read_wav(path, &why);
  if (!sound.ok()) throw ExportError(why);
  if (sound.value().rate != audio::LogMel::rate)
    throw ExportError(path + ": it has " + std::to_string(sound.value().rate) +
                      " samples a second; convert it to " + std::to_string(audio::LogMel::rate));
  return std::move(sound.value());
}

std::string text_of(const llm::Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  const std::vector<llm::TokenId> tokens(ids.begin(), ids.end());
  return tokenizer.decode(
      Span<const llm::TokenId>(tokens.data(), static_cast<index_t>(tokens.size())), true);
}

void transcribe(const TranscribeArguments& a, std::ostream& out) {
  (void)ModelChoice::one_lora(a.lora);
  if (!llm::is_seq2seq(a.model)) throw ExportError(a.model + ": it is no Whisper model");
  const huggingface::Folder folder(a.model);
  const std::unique_ptr<llm::Seq2Seq> model =
      llm::load_seq2seq(a.model, {.lora = a.lora, .cache = llm::cache_type_named(a.cache_dtype)});
  const auto bands = model->config.features;
  if (bands == 0) throw ExportError(a.model + ": it reads texts, not sounds");
  const audio::Sound sound = sound_of(a.audio);
  const llm::Tokenizer tokenizer = llm::read_tokenizer(a.model);
  Exporter exporter;
  add_methods(exporter, *model, {.chunk = 8});
  llm::ProgramSeq2SeqRunner runner(exporter.write(ExportOptions{.exact = a.exact}),
                                   eager::threads());
  llm::Transcriber transcriber(
      runner, llm::read_speech_tokens(folder.generation_config(), folder.config()));
  const audio::LogMel log_mel(static_cast<int>(bands));
  const auto frames = static_cast<int>(model->config.frames());
  const index_t piece = index_t{frames} * audio::LogMel::hop;
  for (index_t first = 0; first < static_cast<index_t>(sound.samples.size()); first += piece) {
    const index_t left = static_cast<index_t>(sound.samples.size()) - first;
    const std::vector<float> features =
        log_mel(Span<const float>(sound.samples.data() + first, std::min(left, piece)), frames);
    const Tensor input = Tensor::from(features, {1, bands, frames});
    const auto written = transcriber.write(input, a.language, model->config.decoder.capacity);
    out << text_of(tokenizer, written.ids) << std::flush;
  }
  out << '\n';
}

}  // namespace

void add_transcribe_command(CommandLine& line, std::ostream& out) {
  const auto arguments = std::make_shared<TranscribeArguments>();
  Command command = line.add("transcribe", "Writes down what is said in a WAV file, with Whisper.");
  command.option("AUDIO", arguments->audio, "a WAV file with 16000 samples a second").required();
  command.option("--model", arguments->model, "the folder of a Whisper model").required();
  command.option("--language", arguments->language,
                 "such as en; without it, the model finds out for each 30 seconds");
  command.flag("--exact", arguments->exact, "compute in f32");
  add_cache_dtype(command, arguments->cache_dtype);
  ModelChoice::add_one_lora(command, arguments->lora);
  command.does([arguments, &out] { transcribe(*arguments, out); });
}

}  // namespace taper::cli
