# taper_test(name sources… [LIBRARIES libraries…] [LABELS labels…] [TIMEOUT seconds])
#
# A GoogleTest program, each of its tests a CTest test. It sees TAPER_TEST_DATA, the folder tests/data, and
# TAPER_GOLDEN_DATA, a folder of golden results that may be absent ("" then). A test whose library is not built
# (the exporter in a device build, the SIMD kernels without Highway) is left out with a line that says so.

set(golden_data_default "")
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/../shared/data)
  cmake_path(ABSOLUTE_PATH PROJECT_SOURCE_DIR NORMALIZE)
  cmake_path(SET golden_data_default NORMALIZE ${PROJECT_SOURCE_DIR}/../shared/data)
endif()
set(TAPER_GOLDEN_DATA "${golden_data_default}" CACHE PATH "Golden results that are too large for the repository")

# What a test program itself does takes no time; to optimize it fully takes a quarter of its compilation.
function(taper_quick_to_build)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

function(taper_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LIBRARIES;LABELS")
  foreach(library IN LISTS arg_LIBRARIES)
    if(library MATCHES "::" AND NOT TARGET ${library})
      message(STATUS "${name} left out: ${library} is not built")
      return()
    endif()
  endforeach()
  if(NOT TARGET GTest::gtest_main)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()

  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  taper_quick_to_build(${name})
  target_link_libraries(${name} PRIVATE taper::host_flags ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
      TAPER_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
      TAPER_GOLDEN_DATA="${TAPER_GOLDEN_DATA}")
  gtest_discover_tests(${name}
      DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

if(TAPER_BUILD_TESTS)
  include(GoogleTest)
endif()
