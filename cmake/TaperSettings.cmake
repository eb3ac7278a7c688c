# Where things go, and what holds for the whole build. Flags of the code stand in TaperFlags.cmake.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # so that static libraries can go into a shared one
endif()

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, MinSizeRel" FORCE)
  endif()
  # `cmake --compile-no-warning-as-error` for compilers newer than those the project is tested with
  if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR)
    set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
  endif()
endif()

find_program(TAPER_CCACHE ccache)
mark_as_advanced(TAPER_CCACHE)
if(TAPER_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # The compiler itself says which files it reads, precompiled headers among them: nothing is preprocessed first. The price
  # is that a comment changed in a header compiles again what includes it. Paths are relative to the tree, so that a second
  # clone finds what the first one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${TAPER_CCACHE})
endif()

# "taper/runtime/…" names a file of this tree; "taper/schema/program_generated.h" is made by flatc.
set(TAPER_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include ${TAPER_GENERATED_DIR}/taper)
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/taper SYMBOLIC)

# Adds those of the given folders that the tree has.
function(taper_add_folders)
  foreach(folder IN LISTS ARGN)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder})
    endif()
  endforeach()
endfunction()
