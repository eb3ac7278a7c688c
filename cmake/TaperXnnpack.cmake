# Looks for XNNPACK where scripts/setup_xnnpack.sh puts it.
option(TAPER_BUILD_XNNPACK "Build the XNNPACK delegate, where the library is found" ON)
if(NOT TAPER_BUILD_XNNPACK)
  return()
endif()

if(DEFINED ENV{TAPER_CACHE} AND NOT "$ENV{TAPER_CACHE}" STREQUAL "off")
  set(cache $ENV{TAPER_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(cache $ENV{XDG_CACHE_HOME}/taper)
else()
  set(cache $ENV{HOME}/.cache/taper)
endif()
set(TAPER_XNNPACK ${cache}/xnnpack-4ea82e5-${CMAKE_SYSTEM_PROCESSOR} CACHE PATH "The folder that XNNPACK is installed in")

find_package(xnnpack QUIET)
if(NOT xnnpack_FOUND)
  message(STATUS "XNNPACK not found in ${TAPER_XNNPACK}: without its delegate (scripts/setup_xnnpack.sh builds the library)")
endif()
