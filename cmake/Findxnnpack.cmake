# XNNPACK, as scripts/setup_xnnpack.sh installs it: xnnpack::xnnpack, if TAPER_XNNPACK names its folder. Its pthreadpool is not linked:
# the delegate runs on the caller's threads.
include(FindPackageHandleStandardArgs)

find_path(TAPER_XNNPACK_INCLUDE xnnpack.h PATHS ${TAPER_XNNPACK}/include NO_DEFAULT_PATH)
mark_as_advanced(TAPER_XNNPACK_INCLUDE)
set(xnnpack_variables TAPER_XNNPACK_INCLUDE)
set(xnnpack_libraries "")
foreach(part XNNPACK xnnpack-microkernels-prod cpuinfo)  # in the order of the linker
  find_library(TAPER_XNNPACK_${part} ${part} PATHS ${TAPER_XNNPACK}/lib NO_DEFAULT_PATH)
  mark_as_advanced(TAPER_XNNPACK_${part})
  list(APPEND xnnpack_variables TAPER_XNNPACK_${part})
  list(APPEND xnnpack_libraries ${TAPER_XNNPACK_${part}})
endforeach()
find_package_handle_standard_args(xnnpack REQUIRED_VARS ${xnnpack_variables})

if(xnnpack_FOUND AND NOT TARGET xnnpack::xnnpack)
  add_library(xnnpack::xnnpack INTERFACE IMPORTED GLOBAL)
  target_include_directories(xnnpack::xnnpack SYSTEM INTERFACE ${TAPER_XNNPACK_INCLUDE})
  target_link_libraries(xnnpack::xnnpack INTERFACE ${xnnpack_libraries} ${CMAKE_DL_LIBS} m)
endif()
