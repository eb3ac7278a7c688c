#include "taper/exporter/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <optional>
#include <ostream>
#include <regex>

#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

// A message in which every line but the first begins with blanks, whatever text a file put into it.
std::string shown(const std::string& text) {
  std::string result;
  size_t begin = 0;
  for (size_t end = 0; end != text.npos; begin = end + 1) {
    end = text.find('\n', begin);
    result += (begin == 0 ? "" : "\n  ") + io::printable(text.substr(begin, end - begin));
  }
  return result;
}

// The error for arguments that name no command.
std::string without_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const std::string what =
      arguments.empty() ? "a command is missing" : "there is no command " + arguments.front();
  return what + "; the commands are " + io::joined(names);
}

// The error for arguments that no option of the command takes.
std::string not_expected(const std::vector<std::string>& arguments) {
  const auto option = std::ranges::find_if(
      arguments, [](const std::string& argument) { return argument.starts_with('-'); });
  return option != arguments.end() ? "there is no option " + *option
                                   : "no argument is expected here: " + io::joined(arguments);
}

// Makes "--graph needs a FILE" from CLI11's "--graph: 1 required FILE missing".
std::string with_missing_value(const std::string& message) {
  static const std::regex one_missing("(.*): 1 required (.*) missing");
  std::smatch part;
  if (!std::regex_match(message, part, one_missing)) return message;
  return part[1].str() + " needs a value: " + part[2].str();
}

// CLI11 takes the largest integer in the place of one that is larger.
std::string too_large(const std::string& text) {
  errno = 0;
  (void)std::strtoll(text.c_str(), nullptr, 0);
  return errno == ERANGE ? text + " needs more than 64 bits" : "";
}

std::string full_name(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.get_name() + (chosen.empty() ? "" : " " + chosen.front()->get_name());
}

}  // namespace

Option Option::required() { return option_->required(), *this; }
Option Option::shows_default() { return option_->capture_default_str(), *this; }
Option Option::one_value() { return option_->allow_extra_args(false), *this; }
Option Option::separated_by(char separator) { return option_->delimiter(separator), *this; }
Option Option::in_range(int lowest, int highest) {
  const CLI::Range range(lowest, highest);
  const auto check = [=](std::string& text) {
    if (range(text).empty()) return std::string();
    return text + " is not a whole number from " + std::to_string(lowest) + " to " +
           std::to_string(highest);
  };
  return option_->check(CLI::Validator(check, range.get_description())), *this;
}
Option Option::one_of(std::vector<std::string> values) {
  const CLI::IsMember member(values);
  const auto check = [values](std::string& text) {
    if (std::ranges::find(values, text) != values.end()) return std::string();
    return text + " is none of " + io::joined(values);
  };
  return option_->check(CLI::Validator(check, member.get_description())), *this;
}
Option Option::checked_by(std::string (*what_is_wrong)(const std::string&)) {
  const auto check = [what_is_wrong](std::string& text) { return what_is_wrong(text); };
  return option_->check(CLI::Validator(check, "")), *this;
}
Option Option::excludes(Option other) { return option_->excludes(other.option_), *this; }

template <class T>
Option Command::option(const char* names, T& value, const char* help) {
  const std::string text = names;
  const size_t end = text.find(' ');
  CLI::Option* added = command_->add_option(text.substr(0, end), value, help);
  if (end != text.npos) added->type_name(text.substr(end + 1));
  Option option(added);
  // the value of an unset shell variable is empty; no file or name is
  const auto what_is_wrong = +[](const std::string& value) {
    return value.empty() ? std::string("the value is empty") : std::string();
  };
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>)
    option.checked_by(what_is_wrong);
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, std::optional<int64_t>>)
    option.checked_by(too_large);
  return option;
}
template Option Command::option(const char*, std::string&, const char*);
template Option Command::option(const char*, int&, const char*);
template Option Command::option(const char*, int64_t&, const char*);
template Option Command::option(const char*, double&, const char*);
template Option Command::option(const char*, std::optional<double>&, const char*);
template Option Command::option(const char*, std::optional<int64_t>&, const char*);
template Option Command::option(const char*, std::vector<std::string>&, const char*);
template Option Command::option(const char*, std::vector<double>&, const char*);

Option Command::flag(const char* names, bool& given, const char* help) {
  return Option(command_->add_flag(names, given, help));
}
Option Command::flag(const char* names, std::function<void()> if_given, const char* help) {
  return Option(command_->add_flag_callback(names, std::move(if_given), help));
}
void Command::footer(const char* text) { command_->footer(text); }
void Command::does(std::function<void()> action) { command_->callback(std::move(action)); }

CommandLine::CommandLine(const char* program, const char* version, const char* help,
                         const char* footer)
    : app_(std::make_unique<CLI::App>(help, program)) {
  app_->footer(footer);
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
}
CommandLine::~CommandLine() = default;

Command CommandLine::add(const char* name, const char* help) {
  return Command(app_->add_subcommand(name, help));
}

int CommandLine::run(const std::vector<std::string>& arguments, std::ostream& out,
                     std::ostream& err) {
  const auto refuse = [&](const std::string& what) {
    const std::string command = full_name(*app_);
    err << command << ": " << shown(what) << "; see `" << command << " --help`\n";
    return usage;
  };
  const auto succeed = [&] {
    if (out.flush()) return success;
    err << full_name(*app_) << ": cannot write to the standard output\n";
    return failure;
  };
  try {
    // CLI11 takes the last one first
    std::vector<std::string> rest(arguments.rbegin(), arguments.rend());
    app_->parse(rest);
    return succeed();
  } catch (const CLI::ExtrasError& e) {
    return refuse(app_->get_subcommands().empty() ? without_command(*app_, arguments)
                                                  : not_expected(app_->remaining(true)));
  } catch (const CLI::ArgumentMismatch& e) {
    return refuse(with_missing_value(e.what()));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app_->exit(e, out, err), succeed();  // --help, --version
    return refuse(app_->get_subcommands().empty() ? without_command(*app_, arguments) : e.what());
  } catch (const UsageError& e) {
    return refuse(e.what());
  } catch (const std::exception& e) {
    err << full_name(*app_) << ": " << shown(e.what()) << '\n';
    return failure;
  }
}

}  // namespace taper::cli
