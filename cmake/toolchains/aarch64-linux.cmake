# 64-bit Arm with Linux, from Debian's cross-compiler and arm64 packages: cmake --preset arm64
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# CTest runs tests in an emulator. QEMU_CPU names the processor.
find_program(TAPER_QEMU_AARCH64 qemu-aarch64)
if(TAPER_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${TAPER_QEMU_AARCH64})
endif()
# flatc and Python are this machine's; libraries come from its folders for arm64
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
