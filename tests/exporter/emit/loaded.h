// A program in memory, run by the runtime.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/eager/tensor.h"
#include "taper/runtime/runtime.h"

namespace taper::emit {

/// Memory at a multiple of 64.
class Region {
 public:
  explicit Region(size_t size)
      : data_(static_cast<std::byte*>(std::aligned_alloc(64, (size + 127) / 64 * 64)), &std::free),
        size_((size + 127) / 64 * 64) {
    std::memset(data_.get(), 0xff, size_);  // NaN: nobody may rely on what lies there
  }
  Span<std::byte> span() const { return {data_.get(), static_cast<index_t>(size_)}; }

 private:
  std::unique_ptr<std::byte, decltype(&std::free)> data_;
  size_t size_;
};

/// One session of a program and one method of it. Failures end the test with the runtime's message.
class Loaded {
 public:
  Loaded(const std::vector<std::byte>& file, const std::string& method,
         const std::vector<const Kernel*>& kernels = eager::all_kernels())
      : file_(file.size()) {
    std::copy(file.begin(), file.end(), file_.span().data());
    const Span<const std::byte> bytes(file_.span().data(), static_cast<index_t>(file.size()));
    ErrorInfo info;
    auto size = Program::metadata_bytes(bytes);
    EXPECT_TRUE(size.ok()) << "the file's structure is refused";
    if (!size.ok()) return;
    regions_.emplace_back(*size);
    LoadOptions load_options;
    load_options.info = &info;
    auto program = Program::load(bytes, {kernels.data(), static_cast<index_t>(kernels.size())},
                                 regions_.back().span(), load_options);
    if (!check(program.ok(), "load", info)) return;
    regions_.emplace_back(program->session_bytes());
    SessionOptions session_options;
    session_options.info = &info;
    auto session = Session::create(*program, regions_.back().span(), session_options);
    if (!check(session.ok(), "session", info)) return;
    session_ = std::make_unique<Session>(*session);
    auto workspace = program->method_metadata_bytes(method.c_str(), &info);
    if (!check(workspace.ok(), "metadata", info)) return;
    regions_.emplace_back(*workspace);
    auto needs = program->requirements(method.c_str(), regions_.back().span(), &info);
    if (!check(needs.ok(), "requirements", info)) return;
    activation_bytes = needs.value().activations;
    regions_.emplace_back(needs.value().total() + 1024);
    auto created = taper::Method::create(*session_, method.c_str(),
                                         MethodMemory(regions_.back().span()), &info);
    if (check(created.ok(), "create", info)) method_ = std::make_unique<taper::Method>(*created);
  }

  std::vector<eager::Tensor> run(const std::vector<eager::Tensor>& inputs) {
    std::vector<eager::Tensor> outputs;
    if (method_ == nullptr) return outputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      check(method_->set_input(static_cast<index_t>(i), inputs[i].ref()) == Error::ok, "set_input",
            method_->last_error());
    if (!check(method_->execute() == Error::ok, "execute", method_->last_error())) return outputs;
    for (index_t i = 0; i < method_->output_count(); ++i) {
      const TensorRef out = method_->output(i);
      if (out.data == nullptr) {
        outputs.emplace_back();
        continue;
      }
      outputs.push_back(
          eager::Tensor::from_bytes(out.data, static_cast<size_t>(out.size_bytes()), out.dtype,
                                    {out.shape->sizes, out.shape->sizes + out.shape->rank}));
    }
    return outputs;
  }

  eager::Tensor state(const std::string& path) const {
    auto index = session_->find_state(path.c_str());
    const StateView s = session_->state(*index);
    return eager::Tensor::from_bytes(s.data, s.size_bytes, s.dtype,
                                     {s.sizes.begin(), s.sizes.end()});
  }

  size_t activation_bytes = 0;

 private:
  static bool check(bool ok, const char* what, const ErrorInfo& info) {
    EXPECT_TRUE(ok) << what << ": " << name_of(info.error) << ", "
                    << (info.message != nullptr ? info.message : "") << " [" << info.values[0]
                    << ", " << info.values[1] << ", " << info.values[2] << "] instruction "
                    << info.instruction << " argument " << info.argument << " "
                    << (info.subject != nullptr ? info.subject : "");
    return ok;
  }

  Region file_;
  std::vector<Region> regions_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<taper::Method> method_;
};

}  // namespace taper::emit
