#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/extension/module/region.h"

namespace taper {

/// The constants of a program that are not in its file. Those of weights files are mapped, those of
/// the application are copied unless it keeps them for the module.
struct OutsideConstants {
  std::deque<MappedFile> files;
  std::vector<Region> regions;
  std::vector<GivenConstant> given;  ///< what LoadOptions::constants takes

  /// Finds all of them. `folder` is the folder of the weights files. False: `why` says which
  /// constant is missing or does not fit.
  bool find(const Program& program, const std::string& folder, const ModuleOptions& options,
            std::string& why);
};

}  // namespace taper
