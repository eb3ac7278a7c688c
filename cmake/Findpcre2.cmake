# Debian's libpcre2-dev brings no CMake package. Defines pcre2::pcre2, the library for UTF-8.
find_path(pcre2_INCLUDE_DIR pcre2.h)
find_library(pcre2_LIBRARY pcre2-8)
mark_as_advanced(pcre2_INCLUDE_DIR pcre2_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(pcre2 DEFAULT_MSG pcre2_LIBRARY pcre2_INCLUDE_DIR)

if(pcre2_FOUND AND NOT TARGET pcre2::pcre2)
  add_library(pcre2::pcre2 UNKNOWN IMPORTED GLOBAL)
  set_target_properties(pcre2::pcre2 PROPERTIES
      IMPORTED_LOCATION ${pcre2_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${pcre2_INCLUDE_DIR})
endif()
