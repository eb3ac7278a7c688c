# taper_test(name sources… [LIBRARIES libraries…] [LABELS labels…] [TIMEOUT seconds] [OPTIMIZED])
#
# A GoogleTest program, each of its tests a CTest test. It sees TAPER_TEST_DATA, the folder tests/data, and
# TAPER_GOLDEN_DATA, a folder of golden results that may be absent ("" then). A test whose library is not built
# (the exporter in a device build, the SIMD kernels without Highway) is left out with a line that says so.
#
# taper_golden_test(name NEEDS paths… COMMAND command…)
#
# A CTest test that runs the command in the folder of golden results. Where one of the paths is not there, CTest reports
# the test as skipped.

set(golden_data_default "")
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/../shared/data)
  cmake_path(ABSOLUTE_PATH PROJECT_SOURCE_DIR NORMALIZE)
  cmake_path(SET golden_data_default NORMALIZE ${PROJECT_SOURCE_DIR}/../shared/data)
endif()
set(TAPER_GOLDEN_DATA "${golden_data_default}" CACHE PATH "Golden results that are too large for the repository")

# For programs that spend their time in the libraries: to optimize them fully takes a quarter of their compilation.
function(taper_quick_to_build)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

# What every test sees and links.
function(taper_test_settings name)
  target_link_libraries(${name} PRIVATE taper::host_flags ${ARGN} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
      TAPER_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
      TAPER_GOLDEN_DATA="${TAPER_GOLDEN_DATA}")
endfunction()

# Tests wait for their compilation, not for their own code; the libraries that they test are optimized. Tests of functions
# that stand in headers (OPTIMIZED) are compiled as the portable kernels, which use them.
set(test_optimization -O0)

# taper_precompile_test_headers(name headers… [LIBRARIES libraries…])
#
# Compiles once what nearly all tests include, which is half of a test's compilation, with the options of tests.
function(taper_precompile_test_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  if(CMAKE_POSITION_INDEPENDENT_CODE)  # of a program
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  endif()
  target_compile_options(${name} PRIVATE ${test_optimization})
  taper_test_settings(${name} ${arg_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${arg_UNPARSED_ARGUMENTS})
endfunction()

function(taper_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMIZED" "TIMEOUT" "LIBRARIES;LABELS")
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
  taper_test_settings(${name} ${arg_LIBRARIES})
  set(above_eager ${arg_LIBRARIES})
  list(FILTER above_eager EXCLUDE REGEX "exporter_(dim|io|roofline)$")
  if(arg_OPTIMIZED)
    target_compile_options(${name} PRIVATE ${taper_vectorize})
  elseif(above_eager MATCHES "taper::exporter")
    target_compile_options(${name} PRIVATE ${test_optimization})
    target_precompile_headers(${name} REUSE_FROM taper_eager_test_headers)
  else()
    target_compile_options(${name} PRIVATE ${test_optimization})
    target_precompile_headers(${name} REUSE_FROM taper_test_headers)
  endif()
  # what others wrote, or a program, includes what it needs
  set(foreign ${arg_UNPARSED_ARGUMENTS})
  list(FILTER foreign INCLUDE REGEX "^/")
  set_source_files_properties(${foreign} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  gtest_discover_tests(${name}
      DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      # a test keeps nothing for the next one
      PROPERTIES TIMEOUT ${arg_TIMEOUT} ENVIRONMENT TAPER_CACHE=off LABELS "${arg_LABELS}")
endfunction()

function(taper_golden_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "NEEDS;COMMAND")
  add_test(NAME ${name}
      COMMAND sh ${PROJECT_SOURCE_DIR}/tests/support/in_golden_data.sh "${TAPER_GOLDEN_DATA}" ${arg_NEEDS} -- ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

if(TAPER_BUILD_TESTS)
  include(GoogleTest)
endif()
