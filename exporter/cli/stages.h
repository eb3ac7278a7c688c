// Shows the present stage of a long command in a line on stderr, for people who wait.
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "taper/exporter/data/progress.h"

namespace taper::cli {

/// The line is shown only on a terminal, after a second has passed. It is redrawn while a stage
/// runs.
///
///   Stages stages(3);
///   stages.begin("importing"); …; stages.begin("planning"); …
class Stages {
 public:
  explicit Stages(int count);
  /// Ends the line.
  ~Stages();
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;

  void begin(const std::string& stage);
  /// Says more about the present stage.
  void show(const std::string& text);

 private:
  void draw_again();

  data::Progress progress_;  // guarded by mutex_
  bool begun_ = false, ended_ = false;
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread clock_;
};

}  // namespace taper::cli
