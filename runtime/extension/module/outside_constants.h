#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/extension/module/region.h"

namespace taper {

/// The constants of a program that are not in its file: those of weights files, mapped, and those
/// of the application, copied.
struct OutsideConstants {
  std::deque<MappedFile> files;
  std::vector<Region> regions;
  std::vector<GivenConstant> given;  ///< what LoadOptions::constants takes

  /// Finds them all. `folder`: where the weights files lie. False: `why` says which one is missing,
  /// or does not fit.
  bool find(const Program& program, const std::string& folder, const ModuleOptions& options,
            std::string& why);
};

}  // namespace taper
