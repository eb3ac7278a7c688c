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

void append(llm::AnswerParts& parts, const llm::AnswerParts& more) {
  parts.thoughts += more.thoughts, parts.text += more.text;
  parts.calls.insert(parts.calls.end(), more.calls.begin(), more.calls.end());
}

void append(AnswerNews& all, const AnswerNews& news) {
  append(all.parts, news.parts);
  all.chances.insert(all.chances.end(), news.chances.begin(), news.chances.end());
  all.finish = news.finish, all.statistics = news.statistics;
}

}  // namespace

Answer::Answer(ApiRequest request, std::vector<std::shared_ptr<Job>> jobs, Responses responses)
    : request_(std::move(request)),
      jobs_(std::move(jobs)),
      responses_(std::move(responses)),
      readers_(jobs_.size(), llm::AnswerReader(request_.answer)),
      texts_(jobs_.size()),
      began_(jobs_.size()) {}

Answer::~Answer() {
  for (const auto& job : jobs_) job->cancel();
}

// Takes the text apart, if it is that of a chat.
AnswerNews Answer::news_of(size_t index, const Progress& came) {
  AnswerNews news;
  news.chances = came.chances, news.finish = came.finish, news.statistics = came.statistics;
  news.calls_before = texts_[index].parts.calls.size();
  if (request_.endpoint != Endpoint::chat) {
    news.parts.text = came.text;
    return news;
  }
  news.parts = readers_[index].push(came.text);
  if (came.finish != Finish::none) append(news.parts, readers_[index].finish());
  const size_t most =
      request_.calls_once ? 1 - std::min<size_t>(news.calls_before, 1) : news.parts.calls.size();
  if (news.parts.calls.size() > most) news.parts.calls.resize(most);
  return news;
}

bool Answer::send_events(size_t index, const AnswerNews& news, httplib::DataSink& sink) {
  if (!request_.streams) return true;
  const bool began = !began_[index];
  if (began || news.has_parts()) {
    AnswerNews parts = news;
    parts.finish = Finish::none;  // the reason of the end comes alone
    began_[index] = true;
    if (!write(sink, event(responses_.chunk(index, parts, began)))) return false;
  }
  if (news.finish == Finish::none) return true;
  AnswerNews end;
  end.finish = news.finish;
  end.calls_before = texts_[index].parts.calls.size();
  return write(sink, event(responses_.chunk(index, end, false)));
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
    if (came.finish == Finish::failed) {
      const json error = ApiError(500, came.message).body();
      if (request_.streams) return write(sink, event(error)), false;
      write(sink, text_of(error));
      return sink.done(), true;
    }
    const bool is_new = !came.text.empty() || !came.chances.empty() || came.finish != Finish::none;
    if (!is_new) continue;
    const AnswerNews news = news_of(i, came);
    append(texts_[i], news);
    const bool is_told = news.has_parts() || news.finish != Finish::none;
    if (is_told && !send_events(i, news, sink)) return false;
  }
  if (!sink.is_writable()) return false;
  const bool ended = std::ranges::all_of(
      texts_, [](const AnswerNews& text) { return text.finish != Finish::none; });
  return !ended || send_end(sink);
}

}  // namespace taper::serve
