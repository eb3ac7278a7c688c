// Loops over the registers of a tile. Each source includes this in a namespace of its own, between
// the pragmas of its instruction set: there is no #pragma once. It needs <utility>.

template <int... i, class Body>
TAPER_INLINE void unrolled(std::integer_sequence<int, i...>, const Body& body) {
  (body(std::integral_constant<int, i>()), ...);
}
/// Calls body(i) for each i < n, a constant. So arrays that it indexes can be registers.
template <int n, class Body>
TAPER_INLINE void unrolled(const Body& body) {
  unrolled(std::make_integer_sequence<int, n>(), body);
}
#define TAPER_EACH(i) [&](auto i) __attribute__((always_inline))
