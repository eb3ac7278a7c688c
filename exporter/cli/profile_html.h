// Shows a profile as a page for a browser.
#pragma once
#include <iosfwd>
#include <string>

#include "taper/exporter/cli/profile_report.h"

namespace taper::cli {

/// One HTML file that needs no other file and no network. It contains a timeline of the run with
/// the median time, and tables of modules, operators and instructions. Names of a program are
/// always shown as text. `title` is the heading.
void write_profile_html(std::ostream& out, const std::string& title, const Profile& profile);

}  // namespace taper::cli
