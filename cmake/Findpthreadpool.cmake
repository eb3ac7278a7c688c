# Debian's libpthreadpool-dev brings no CMake package. Defines pthreadpool::pthreadpool.
find_path(pthreadpool_INCLUDE_DIR pthreadpool.h)
find_library(pthreadpool_LIBRARY pthreadpool)
mark_as_advanced(pthreadpool_INCLUDE_DIR pthreadpool_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(pthreadpool DEFAULT_MSG pthreadpool_LIBRARY pthreadpool_INCLUDE_DIR)

if(pthreadpool_FOUND AND NOT TARGET pthreadpool::pthreadpool)
  find_package(Threads REQUIRED)
  add_library(pthreadpool::pthreadpool UNKNOWN IMPORTED GLOBAL)
  set_target_properties(pthreadpool::pthreadpool PROPERTIES
      IMPORTED_LOCATION ${pthreadpool_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${pthreadpool_INCLUDE_DIR}
      INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
