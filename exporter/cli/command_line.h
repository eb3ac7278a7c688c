// Describes what a command line may contain: commands and their options. It is built on CLI11; only
// command_line.cpp compiles CLI11's templates.
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

/// The exit codes of a command.
enum ExitCode : int {
  success = 0,
  failure = 1,  ///< a file is missing or damaged, an input does not fit, a run failed
  usage = 2,    ///< the command line is wrong
};

/// The command line is wrong. The message says what is missing, or which option is wrong and why.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  UsageError(const std::string& option, const std::string& what)
      : std::runtime_error(option + ": " + what) {}
};

/// An argument, option or flag of a command. Its members add properties, and can be chained.
class Option {
 public:
  Option required();
  Option shows_default();               ///< the help shows the present value of the variable
  Option one_value();                   ///< takes one value each time that it is given
  Option separated_by(char separator);  ///< takes several values in one argument
  Option in_range(int lowest, int highest);
  Option one_of(std::vector<std::string> values);
  /// `what_is_wrong` gives the error, or "" if there is none
  Option checked_by(std::string (*what_is_wrong)(const std::string&));
  Option excludes(Option other);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

/// A command that is being described. Its variables must live as long as the command line.
class Command {
 public:
  /// Example of `names`: "-o,--output FILE", where FILE is the value's name in the help. A name
  /// without dashes is an argument. `T` is std::string, int, int64_t, double,
  /// std::optional<double>, std::optional<int64_t>, or a vector of std::string or double.
  template <class T>
  Option option(const char* names, T& value, const char* help);
  Option flag(const char* names, bool& given, const char* help);
  Option flag(const char* names, std::function<void()> if_given, const char* help);
  void footer(const char* text);  ///< text at the end of the help
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

  /// Runs the command that the arguments name; the program's name is not among them. Results and
  /// help go to `out`. An error (UsageError, or any other exception of the action) goes to `err`:
  /// one line, with further lines indented. Returns an ExitCode.
  int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace taper::cli
