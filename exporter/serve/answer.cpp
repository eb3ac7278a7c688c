#include "taper/exporter/serve/answer.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

namespace taper::serve {
namespace {

using llm::Finish;

/// How often a client that waits is looked at.
constexpr std::chrono::milliseconds look{100};

bool write(httplib::DataSink& sink, const std::string& text) {
  return sink.write(text.data(), text.size());
}
std::string event(const json& object) { return "data: " + text_of(object) + "\n\n"; }

void append(Progress& text, const Progress& came) {
  text.text += came.text;
  text.chances.insert(text.chances.end(), came.chances.begin(), came.chances.end());
  text.finish = came.finish, text.message = came.message, text.statistics = came.statistics;
}

}  // namespace

Answer::Answer(ApiRequest request, std::vector<std::shared_ptr<Job>> jobs, Responses responses)
    : request_(std::move(request)),
      jobs_(std::move(jobs)),
      responses_(std::move(responses)),
      texts_(jobs_.size()),
      began_(jobs_.size()) {}

Answer::~Answer() {
  for (const auto& job : jobs_) job->cancel();
}

bool Answer::send_events(size_t index, const Progress& progress, httplib::DataSink& sink) {
  if (!request_.streams) return true;
  const bool began = !began_[index];
  began_[index] = true;
  if (progress.finish == Finish::none)
    return write(sink, event(responses_.chunk(index, progress, began)));
  // the last text, and then the reason of the end alone
  Progress last = progress, end;
  last.finish = Finish::none, end.finish = progress.finish;
  const bool has_text = began || !last.text.empty() || !last.chances.empty();
  return (!has_text || write(sink, event(responses_.chunk(index, last, began)))) &&
         write(sink, event(responses_.chunk(index, end, false)));
}

bool Answer::send_end(httplib::DataSink& sink) {
  const bool sent = !request_.streams ? write(sink, text_of(responses_.whole(texts_)))
                                      : (!request_.includes_usage ||
                                         write(sink, event(responses_.usage_chunk(texts_)))) &&
                                            write(sink, "data: [DONE]\n\n");
  sink.done();
  return sent;
}

// Each call looks at the first text that goes on, and takes what came of the others.
bool Answer::send(httplib::DataSink& sink) {
  bool waited = false;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (texts_[i].finish != Finish::none) continue;
    const Progress came = jobs_[i]->wait(waited ? std::chrono::milliseconds(0) : look);
    waited = true;
    append(texts_[i], came);
    if (came.finish == Finish::failed) {
      const json error = ApiError(500, came.message).body();
      if (request_.streams) return write(sink, event(error)), false;
      write(sink, text_of(error));
      return sink.done(), true;
    }
    const bool is_new = !came.text.empty() || !came.chances.empty() || came.finish != Finish::none;
    if (is_new && !send_events(i, came, sink)) return false;
  }
  if (!sink.is_writable()) return false;
  const bool ended =
      std::ranges::all_of(texts_, [](const Progress& text) { return text.finish != Finish::none; });
  return !ended || send_end(sink);
}

}  // namespace taper::serve
