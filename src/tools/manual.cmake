# Manual pages and bash completion, made of what the programs say of themselves (manual.py), in
# <build>/share; installed by cmake/Install.cmake.
set(manual_py ${CMAKE_CURRENT_SOURCE_DIR}/tools/manual.py)
set(manual_dir ${CMAKE_BINARY_DIR}/share)
set(manual_pages)
set(manual_programs)

function(manual_page name section)
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name})
  set(page ${manual_dir}/man/man${section}/${name}.${section})
  set(depends ${manual_py} ${program})
  if(TARGET ${name})
    list(APPEND depends ${name})
  endif()
  add_custom_command(OUTPUT ${page} COMMAND ${Python3_EXECUTABLE} ${manual_py} man ${program} ${page}
    DEPENDS ${depends} VERBATIM)
  set(manual_pages ${manual_pages} ${page} PARENT_SCOPE)
  set(manual_programs ${manual_programs} ${program} PARENT_SCOPE)
endfunction()

foreach(name ${tool_names})
  manual_page(${name} 1)
endforeach()
if(TARGET kafkad)
  manual_page(kafkad 8)
endif()

set(completion ${manual_dir}/bash-completion/completions/kafkad)
add_custom_command(OUTPUT ${completion}
  COMMAND ${Python3_EXECUTABLE} ${manual_py} completion ${completion} ${manual_programs}
  DEPENDS ${manual_py} ${manual_pages} VERBATIM)
add_custom_target(manuals ALL DEPENDS ${manual_pages} ${completion})
set(manual_pages ${manual_pages} PARENT_SCOPE) # for the installation
set(completion ${completion} PARENT_SCOPE)
