# One executable per tool: src/tools/<name>.c -> bin/<name> and the link bin/<name>.sh. Files that begin with
# tool_ are shared by the tools.
file(GLOB tool_mains CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/kafka-*.c)
file(GLOB tool_shared CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/tool_*.c)
if(tool_shared)
  room(tools SOURCES ${tool_shared} DEPENDS client net protocol base)
endif()
foreach(main ${tool_mains})
  get_filename_component(name ${main} NAME_WE)
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE room_client)
  if(tool_shared)
    target_link_libraries(${name} PRIVATE room_tools)
  endif()
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${name} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}.sh)
endforeach()
