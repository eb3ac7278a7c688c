# Bare-metal Cortex-M3 with newlib: cmake --preset device --toolchain cmake/toolchains/cortex-m3.cmake
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR armv7-m)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # there is no start-up code to link a program with

if(NOT taper_cortex_m_flags)  # the toolchains of other processors set it
  set(taper_cortex_m_flags -mcpu=cortex-m3)
endif()
# -Wno-psabi: no notes about the argument order of GCC before 7.1
set(CMAKE_CXX_FLAGS_INIT "${taper_cortex_m_flags} -mthumb -Wno-psabi")
# flatc and CMake packages are the build machine's; only headers come from them
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
