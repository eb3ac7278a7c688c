#include <gmock/gmock.h>

#include <sstream>
#include <thread>

#include "taper/exporter/eager/eager.h"

namespace taper::eager {
namespace {

using testing::HasSubstr;

std::string file_here() { return Location(__FILE__, 0, "").file; }

TEST(place, replaces_the_lines_of_calls_while_it_lives) {
  const Location outer("outer.cpp", 1, ""), inner("inner.cpp", 2, "");
  EXPECT_FALSE(place().known());
  {
    const PlaceScope scope(outer);
    EXPECT_EQ(Location::current().to_string(), "outer.cpp:1");
    {
      const PlaceScope within(inner);
      EXPECT_EQ(place().to_string(), "inner.cpp:2");
    }
    const PlaceScope unknown{Location()};  // leaves the place that is there
    EXPECT_EQ(Location::current().to_string(), "outer.cpp:1");
  }
  EXPECT_EQ(Location::current().file, file_here());
}
TEST(place, belongs_to_one_thread) {
  const PlaceScope scope(Location("outer.cpp", 1, ""));
  std::thread([] {
    EXPECT_FALSE(place().known());
    EXPECT_EQ(Location::current().file, file_here());
  }).join();
}
TEST(place, of_an_error_in_a_decomposition_is_the_line_of_the_user) {
  const int line = __LINE__ + 2;
  try {
    einsum("ij,jk->ik", {ones({2, 3}), ones({4, 5})});
    FAIL();
  } catch (const EagerError& e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_EQ(e.where().file, file_here());
  }
  EXPECT_FALSE(place().known());  // the error has left the scope
}
TEST(place, of_a_second_derivative_is_the_line_of_the_user) {
  const Tensor x = full({3}, 0.5).set_requires_grad();
  const Tensor y = sum(tanh(x) * logsumexp(x, {0}));
  const Tensor gradient = grad({y}, {x}, {}, /*create_graph=*/true)[0];
  std::istringstream lines(graph_of(gradient));
  int places = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find("# ") != std::string::npos) {
      ++places;
      EXPECT_THAT(line, HasSubstr("# place_test.cpp:"));
    }
  EXPECT_GT(places, 5);
}

}  // namespace
}  // namespace taper::eager
