# Fails if the app has more than MOST bytes.
file(SIZE ${APP} bytes)
if(bytes GREATER MOST)
  message(FATAL_ERROR "${APP} has ${bytes} bytes, more than ${MOST}: does it link all kernels?")
endif()
message(STATUS "${bytes} bytes")
