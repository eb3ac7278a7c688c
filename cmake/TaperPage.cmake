# taper_page(library name NAMESPACE namespace HTML page.html PARTS style.css script.js…)
#
# Adds a page for a browser to a library, as one text: `const std::string_view name`, which a header of the library declares.
# Each part stands in the page where the page says {{style.css}} on a line of its own.
set(taper_page_template ${CMAKE_CURRENT_LIST_DIR}/page.cpp.in)
function(taper_page library name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAMESPACE;HTML" "PARTS")
  file(READ ${arg_HTML} text)
  foreach(part IN LISTS arg_PARTS)
    get_filename_component(file ${part} NAME)
    get_filename_component(path ${part} ABSOLUTE)
    file(READ ${path} content)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    string(REPLACE "{{${file}}}\n" "${content}" text "${text}")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${arg_HTML})
  configure_file(${taper_page_template} ${name}.cpp @ONLY)
  target_sources(${library} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
endfunction()
