# Debian's libcpp-httplib-dev brings no CMake package. Defines httplib::httplib. Its library was compiled with macros that its
# header must see, too; pkg-config knows them.
find_path(httplib_INCLUDE_DIR httplib.h)
find_library(httplib_LIBRARY cpp-httplib)
mark_as_advanced(httplib_INCLUDE_DIR httplib_LIBRARY)
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(httplib_PC QUIET cpp-httplib)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(httplib DEFAULT_MSG httplib_LIBRARY httplib_INCLUDE_DIR httplib_PC_FOUND)

if(httplib_FOUND AND NOT TARGET httplib::httplib)
  add_library(httplib::httplib UNKNOWN IMPORTED GLOBAL)
  set_target_properties(httplib::httplib PROPERTIES
      IMPORTED_LOCATION ${httplib_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${httplib_INCLUDE_DIR}
      INTERFACE_COMPILE_OPTIONS "${httplib_PC_CFLAGS_OTHER}")
endif()
