# The records of a library stand beside their functions. A table of all of them is made from the sources, so that no second
# list has to agree with them.
#
#   taper_list(taper/<folder>/<name>.def MACRO <macro> NUMBER <0 or 1> MARK <name>
#       SOURCES … [HEADERS …] [TABLES …] [FIRST …] [LAST …])
#
# For each use of <macro> in SOURCES the .def gets a line <name>(<argument>): the macro's argument NUMBER (0 or 1). HEADERS
# define macros that use <macro>, and TABLES are .def files that SOURCES include. Names come in the order of the sources, but
# those that a regular expression of FIRST fits come first, and those of LAST last.
function(taper_list def)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MACRO;NUMBER;MARK" "SOURCES;HEADERS;TABLES;FIRST;LAST")
  set(script ${PROJECT_SOURCE_DIR}/cmake/list_uses.cmake)
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  # which machine is compiled for decides which records exist
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
  if(CMAKE_CXX_COMPILER_TARGET)
    list(APPEND flags --target=${CMAKE_CXX_COMPILER_TARGET})
  endif()
  add_custom_command(
      OUTPUT ${TAPER_GENERATED_DIR}/${def}
      COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_CXX_COMPILER} "-DFLAGS=${flags}" -DINCLUDE=${PROJECT_BINARY_DIR}/include
              -DGENERATED=${TAPER_GENERATED_DIR} -DDEF=${def} -DMACRO=${arg_MACRO} -DNUMBER=${arg_NUMBER} -DMARK=${arg_MARK}
              "-DSOURCES=${arg_SOURCES}" "-DHEADERS=${arg_HEADERS}" "-DFIRST=${arg_FIRST}" "-DLAST=${arg_LAST}" -P ${script}
      DEPENDS ${arg_SOURCES} ${arg_HEADERS} ${arg_TABLES} ${script}
      COMMENT "${def}"
      VERBATIM)
  string(MAKE_C_IDENTIFIER ${def} name)
  add_custom_target(${name} DEPENDS ${TAPER_GENERATED_DIR}/${def})
  add_dependencies(taper_headers ${name})  # whatever includes it finds it
endfunction()
