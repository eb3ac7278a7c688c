#include "taper/exporter/cli/stages.h"

#include <chrono>

namespace taper::cli {

Stages::Stages(int count)
    : progress_(count, "", {.unit = "", .quiet_seconds = 1, .only_on_terminal = true}),
      clock_([this] { draw_again(); }) {}

Stages::~Stages() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (begun_) progress_.advance();
  }
  end_.notify_one();
  clock_.join();
}

void Stages::begin(const std::string& stage) {
  const std::lock_guard lock(mutex_);
  if (begun_) progress_.advance();
  begun_ = true;
  progress_.set_title(stage);
}

void Stages::show(const std::string& text) {
  const std::lock_guard lock(mutex_);
  progress_.set_title(text);
}

void Stages::draw_again() {
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, std::chrono::milliseconds(200), [this] { return ended_; }))
    progress_.advance(0);
}

}  // namespace taper::cli
