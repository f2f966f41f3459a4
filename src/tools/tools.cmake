# One executable per tool: src/tools/<name>.c -> bin/<name> and the link bin/<name>.sh. Files that begin with
# tool_ are shared by the tools. Tools without .c are shell scripts.
file(GLOB tool_mains CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/kafka-*.c
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/zookeeper-*.c)
file(GLOB tool_shared CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/tool_*.c)
set(tool_scripts kafka-server-start kafka-server-stop)
set(tool_names ${tool_scripts})

# log: kafka-dump-log reads a log's files with the code that writes them. metadata, acl: tools that speak to ZooKeeper.
room(tools SOURCES ${tool_shared} DEPENDS client acl log metadata net protocol base
  LIBRARIES PkgConfig::jansson zookeeper_lib)
foreach(main ${tool_mains})
  get_filename_component(name ${main} NAME_WE)
  list(APPEND tool_names ${name})
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE room_tools)
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${name} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}.sh)
endforeach()
foreach(name ${tool_scripts})
  configure_file(tools/${name} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name} COPYONLY)
  file(CREATE_LINK ${name} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}.sh SYMBOLIC)
endforeach()
set(tool_names ${tool_names} PARENT_SCOPE) # for the installation
