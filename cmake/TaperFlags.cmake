# What each tier's code is compiled with: a library links one of these. Of an installed Taper only the C++ version stays.
#
#   taper::headers       the include paths
#   taper::device_flags  C++17 without exceptions and RTTI; nothing that changes a floating-point result
#   taper::app_flags     C++17 with the standard library
#   taper::host_flags    C++20

add_library(taper_headers INTERFACE)
add_library(taper::headers ALIAS taper_headers)
target_include_directories(taper_headers INTERFACE
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<BUILD_INTERFACE:${TAPER_GENERATED_DIR}>
    $<INSTALL_INTERFACE:include>)

# Warnings, and the same floating-point results from every compiler: a fused multiply-add is written where it is meant.
add_library(taper_common_flags INTERFACE)
target_compile_options(taper_common_flags INTERFACE "$<BUILD_INTERFACE:-Wall;-Wextra;-Wno-missing-field-initializers;-ffp-contract=off>")
target_link_libraries(taper_common_flags INTERFACE taper::headers)
# clang warns where a loop that asks for vectorization stays scalar, as all do without optimization
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(taper_common_flags INTERFACE $<BUILD_INTERFACE:-Wno-pass-failed>)
endif()

function(taper_add_flags name standard)
  add_library(taper_${name} INTERFACE)
  add_library(taper::${name} ALIAS taper_${name})
  target_compile_features(taper_${name} INTERFACE ${standard})
  target_link_libraries(taper_${name} INTERFACE taper_common_flags)
endfunction()
taper_add_flags(device_flags cxx_std_17)
taper_add_flags(app_flags cxx_std_17)
taper_add_flags(host_flags cxx_std_20)

# A firmware links only the kernels that it names: one section a function, and the linker drops the rest.
# -fno-math-errno lets sqrt() be one instruction; its value stays the same.
target_compile_options(taper_device_flags INTERFACE
    "$<BUILD_INTERFACE:-fno-exceptions;-fno-rtti;-fno-threadsafe-statics;-fno-math-errno>"
    "$<BUILD_INTERFACE:-ffunction-sections;-fdata-sections>")

# In a firmware nothing unwinds the stack, so the tables for it would be a fifth of its size for nothing.
if(NOT TAPER_BUILD_APP)
  target_compile_options(taper_device_flags INTERFACE $<BUILD_INTERFACE:-fno-asynchronous-unwind-tables>)
endif()

option(TAPER_MESSAGES "Keep the texts of errors in device code; codes and numbers stay without them" ON)
if(NOT TAPER_MESSAGES)
  target_compile_definitions(taper_device_flags INTERFACE $<BUILD_INTERFACE:TAPER_NO_MESSAGES>)
endif()

# Loops over elements should become vector instructions. gcc's -O2 leaves most of them alone: its cost model takes only what
# is never slower. -O3 would vectorise them too, but compiles half as long again for loops that run no faster. Assuming that
# math functions set errno, or that comparisons trap, forbids vectors. None of these changes a result.
set(taper_vectorize $<$<CONFIG:Release>:-O2> -fno-math-errno -fno-trapping-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND taper_vectorize $<$<CONFIG:Release>:-ftree-vectorize> $<$<CONFIG:Release>:-fvect-cost-model=dynamic>)
endif()

# Release builds and those with sanitizers.
set(together OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(together ON)
endif()
option(TAPER_COMPILE_TOGETHER "Compile sources of the host side and of apps sixteen at a time" ${together})
