# libjpeg-turbo's TurboJPEG library: turbojpeg::turbojpeg.
find_path(turbojpeg_INCLUDE_DIR turbojpeg.h)
find_library(turbojpeg_LIBRARY turbojpeg)
mark_as_advanced(turbojpeg_INCLUDE_DIR turbojpeg_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(turbojpeg DEFAULT_MSG turbojpeg_LIBRARY turbojpeg_INCLUDE_DIR)

if(turbojpeg_FOUND AND NOT TARGET turbojpeg::turbojpeg)
  add_library(turbojpeg::turbojpeg UNKNOWN IMPORTED GLOBAL)
  set_target_properties(turbojpeg::turbojpeg PROPERTIES
      IMPORTED_LOCATION ${turbojpeg_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${turbojpeg_INCLUDE_DIR})
endif()
