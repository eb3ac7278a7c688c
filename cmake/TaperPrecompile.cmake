# How the libraries of the host side are compiled. Nearly all of that time went into reading the same headers and into
# optimizing code that runs once.
#
#   taper_std_headers    the standard library, compiled once
#   taper_eager_headers  that, and eager
#
# tests/headers compiles every header of ours without them.

# What runs once is not worth optimizing fully. At -O1 gcc 12 gives warnings that need more optimization to be right.
set(host_optimization $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND host_optimization -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized)
  # gcc looks for memory to free whenever it has taken 128 MB more: a tenth of the time for the sources together. At most
  # 150 MB more are taken if that begins at 512 MB.
  list(APPEND host_optimization --param=ggc-min-heapsize=524288)
endif()

function(taper_precompile_headers name)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE taper::host_flags)
  target_compile_options(${name} PRIVATE ${host_optimization})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

set(std_headers
    <algorithm> <array> <cmath> <cstdint> <cstdio> <cstring> <fstream> <functional> <iostream> <limits> <map>
    <memory> <numeric> <optional> <ostream> <set> <span> <sstream> <stdexcept> <string> <string_view> <tuple> <unordered_map>
    <unordered_set> <utility> <variant> <vector>)
taper_precompile_headers(taper_std_headers ${std_headers})
set(eager ${PROJECT_SOURCE_DIR}/exporter/eager)
taper_precompile_headers(taper_eager_headers ${std_headers}
    ${eager}/eager.h ${eager}/decompositions/decomposition.h ${eager}/derivatives/derivative.h
    ${PROJECT_SOURCE_DIR}/exporter/ir/graph.h)

# taper_host_library(library HEADERS taper_std_headers | taper_eager_headers [TOGETHER] [FAST sources…])
#
# TOGETHER: with TAPER_COMPILE_TOGETHER the sources are compiled sixteen at a time, so that what they instantiate is compiled
# once.
# FAST: sources that run per call, per element or in long searches. They are optimized as the build type says. If the others
# are compiled together, these are, too: as one source, since those of a unit share their options.
function(taper_host_library library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TOGETHER" "HEADERS" "FAST")
  target_precompile_headers(${library} REUSE_FROM ${arg_HEADERS})
  target_compile_options(${library} PRIVATE ${host_optimization})
  if(arg_FAST AND arg_TOGETHER AND TAPER_COMPILE_TOGETHER)
    set(includes ${arg_FAST})
    list(TRANSFORM includes REPLACE "(.+)" "#include \"${CMAKE_CURRENT_SOURCE_DIR}/\\1\"\n")
    string(JOIN "" includes ${includes})
    set_source_files_properties(${arg_FAST} PROPERTIES HEADER_FILE_ONLY ON)
    set(arg_FAST ${CMAKE_CURRENT_BINARY_DIR}/${library}_fast.cpp)
    file(CONFIGURE OUTPUT ${arg_FAST} CONTENT "${includes}" @ONLY)
    target_sources(${library} PRIVATE ${arg_FAST})
  endif()
  set_source_files_properties(${arg_FAST} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON
      COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
  if(arg_TOGETHER AND TAPER_COMPILE_TOGETHER)
    set_target_properties(${library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
endfunction()
