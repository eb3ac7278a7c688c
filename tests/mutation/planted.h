// Which planted bug is on. run.py includes this in the files that it changes; nothing else does.
#pragma once
#include <cstdlib>

/// The number that the environment variable TAPER_PLANTED gives; 0: no bug. Read before main, so
/// that hot loops pay one load.
inline const int taper_planted_number = [] {
  const char* number = std::getenv("TAPER_PLANTED");
  return number != nullptr ? std::atoi(number) : 0;
}();

[[gnu::always_inline]] inline bool taper_planted(int number) {
  return taper_planted_number == number;
}
