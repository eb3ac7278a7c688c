// What a command line may say: commands and their options, over CLI11, whose templates
// command_line.cpp alone compiles.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace taper::cli {

/// What a command returns to the shell.
enum ExitCode : int {
  success = 0,
  failure = 1,  ///< a file is missing or damaged, an input does not fit, a run failed
  usage = 2,    ///< the command line is wrong
};

/// The command line is wrong: what it lacks, or which option is wrong and how.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  UsageError(const std::string& option, const std::string& what)
      : std::runtime_error(option + ": " + what) {}
};

/// An argument, option or flag of a command. Members say more of it, and can be chained.
class Option {
 public:
  Option required();
  Option shows_default();               ///< the help shows what the variable holds now
  Option one_value();                   ///< takes one value, each time that it is given
  Option separated_by(char separator);  ///< takes several values in one argument
  Option in_range(int lowest, int highest);
  Option one_of(std::vector<std::string> values);
  Option checked_by(std::string (*what_is_wrong)(const std::string&));  ///< "" if nothing is
  Option excludes(Option other);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

/// A command that is being described. Its variables must live as long as the command line.
class Command {
 public:
  /// `names` are "-o,--output FILE", say: the help calls the value FILE. A name without dashes is
  /// an argument's. `T`: std::string, int, int64_t, double, std::optional<double>, or a vector of
  /// std::string or double.
  template <class T>
  Option option(const char* names, T& value, const char* help);
  Option flag(const char* names, bool& given, const char* help);
  Option flag(const char* names, std::function<void()> if_given, const char* help);
  void footer(const char* text);  ///< what the help says at its end
  void does(std::function<void()> action);

 private:
  friend class CommandLine;
  explicit Command(CLI::App* command) : command_(command) {}

  CLI::App* command_;
};

/// The commands of a program.
class CommandLine {
 public:
  CommandLine(const char* program, const char* version, const char* help, const char* footer);
  ~CommandLine();

  Command add(const char* name, const char* help);

  /// Does what the arguments behind the program's name say. Results and help go to `out`, an error
  /// (UsageError, or any other exception of the action) to `err`: one line, further ones indented.
  /// Returns an ExitCode.
  int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace taper::cli
