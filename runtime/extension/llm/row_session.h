#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "taper/runtime/extension/module/module.h"

namespace taper::llm {

/// A method of a language model, and the most that a call takes.
struct RowMethod {
  Method method;
  int64_t rows = 1;         ///< texts of a call
  int64_t chunk = 0;        ///< tokens of each of them
  bool by_row = false;      ///< it takes the rows of the caches
  bool by_adapter = false;  ///< it takes the adapters of the texts
};

/// Looks at a method that was just created, so that its inputs have their largest shapes: ids i64
/// (rows, n), start i64 (rows) and, by their names, rows i64 (rows) and adapters i64 (rows). Throws
/// Failure.
RowMethod row_method(const Method& method, const std::string& name);

/// A session whose caches have a row for each of several texts, and its methods. A sequence takes a
/// row until it ends. The module outlives the session.
class RowSession {
 public:
  /// The session of the module itself.
  RowSession(Module& module, int64_t rows);
  /// One with memory of its own. Throws Failure if there is none.
  RowSession(Module& module, int64_t rows, const Threads* threads);
  RowSession(const RowSession&) = delete;
  ~RowSession();

  /// A row that no sequence has; -1: there is none.
  int64_t take_row();
  void give_back(int64_t row);

  Session& session();
  /// Made when it is asked for. Throws Failure. One thread at a time is here, or in the module.
  RowMethod& method(const std::string& name);

  /// Held from the inputs of a call until its results were read.
  std::mutex running;
  std::vector<int64_t> ids, starts, rows, adapters;  ///< of the call

 private:
  class Memory;
  Module& module_;
  std::unique_ptr<Memory> memory_;  ///< nullptr: the module's
  std::map<std::string, RowMethod> methods_;
  std::mutex taking_;
  std::vector<bool> taken_;
};

/// A row that is taken.
class TakenRow {
 public:
  TakenRow(std::shared_ptr<RowSession> session, int64_t row)
      : session_(std::move(session)), row_(row) {}
  TakenRow(const TakenRow&) = delete;
  TakenRow(TakenRow&&) = default;
  ~TakenRow() {
    if (session_ != nullptr) session_->give_back(row_);
  }
  RowSession& session() const { return *session_; }
  int64_t row() const { return row_; }

 private:
  std::shared_ptr<RowSession> session_;
  int64_t row_;
};

}  // namespace taper::llm
