# FlatBuffers is required. Everything else is optional: a missing one switches its feature off with a line that says so.
# A folder asks `if(TARGET hwy::hwy)`.

# taper_optional(package target what-is-left-out-without-it [find_package arguments…])
function(taper_optional package target feature)
  find_package(${package} ${ARGN} QUIET GLOBAL)
  if(NOT TARGET ${target})
    message(STATUS "${package} not found: without ${feature}")
  endif()
endfunction()

# Of FlatBuffers, flatc and the headers. They are reached through a link, because the rest of /usr/include must not be seen
# when building for another machine.
find_program(TAPER_FLATC flatc REQUIRED)
find_path(TAPER_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h PATHS /usr/include /usr/local/include REQUIRED)
mark_as_advanced(TAPER_FLATC TAPER_FLATBUFFERS_INCLUDE)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/flatbuffers)
file(CREATE_LINK ${TAPER_FLATBUFFERS_INCLUDE}/flatbuffers ${PROJECT_BINARY_DIR}/flatbuffers/flatbuffers SYMBOLIC)

taper_optional(hwy hwy::hwy "the SIMD kernels (kernels/optimized)" CONFIG)
if(TAPER_BUILD_APP)
  taper_optional(Threads Threads::Threads "threads")
endif()
if(TAPER_BUILD_EXPORTER)
  taper_optional(nlohmann_json nlohmann_json::nlohmann_json "safetensors")
  taper_optional(CLI11 CLI11::CLI11 "the taper command")
  taper_optional(PNG PNG::PNG "PNG images")
  taper_optional(turbojpeg turbojpeg::turbojpeg "JPEG images")
  taper_optional(ZLIB ZLIB::ZLIB "compressed data sets")
  taper_optional(minizip minizip::minizip "PyTorch's archives (.pt2)")
endif()
if(TAPER_BUILD_TESTS)
  taper_optional(GTest GTest::gtest "the tests")
endif()
if(TAPER_BUILD_BENCHMARKS)
  taper_optional(benchmark benchmark::benchmark "the benchmarks")
endif()
