// Sends the texts of a request to a client while they are written.
#pragma once
#include <httplib.h>

#include <memory>
#include <vector>

#include "taper/exporter/serve/api.h"

namespace taper::serve {

/// The answer of one request. When it is destroyed, its texts end: a client that vanishes stops the
/// work for it.
class Answer {
 public:
  Answer(ApiRequest request, std::vector<std::shared_ptr<Job>> jobs, Responses responses);
  ~Answer();
  Answer(const Answer&) = delete;

  /// Sends what came. httplib calls it again until it has called `sink.done`. False: the client is
  /// gone, or a text failed when a part of the answer was sent already.
  bool send(httplib::DataSink& sink);
  const char* media_type() const {
    return request_.streams ? "text/event-stream" : "application/json";
  }

 private:
  AnswerNews news_of(size_t index, const Progress& came);
  bool send_events(size_t index, const AnswerNews& news, httplib::DataSink& sink);
  bool send_end(httplib::DataSink& sink);

  const ApiRequest request_;
  const std::vector<std::shared_ptr<Job>> jobs_;
  const Responses responses_;
  std::vector<llm::AnswerReader> readers_;
  std::vector<AnswerNews> texts_;  ///< all that came
  std::vector<bool> began_;
};

}  // namespace taper::serve
