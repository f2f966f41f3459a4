# The client library for others: libkafkad-client, shared and static, from the rooms that it is made of.
#
# Only what include/kafka marks KAFKA_API is visible: in the shared library by the compiler's visibility (Flags.cmake), in
# the static one by making all else local to the one object that it holds.
include(GNUInstallDirs)
set(client_rooms base protocol sasl net client)
set(client_objects)
foreach(room ${client_rooms})
  list(APPEND client_objects $<TARGET_OBJECTS:room_${room}>)
endforeach()
set(client_libraries PkgConfig::libuv ZLIB::ZLIB PkgConfig::liblz4 PkgConfig::libzstd snappy_lib PkgConfig::openssl
  PkgConfig::jansson Threads::Threads)

add_library(kafkad_client SHARED ${client_objects})
set_target_properties(kafkad_client PROPERTIES OUTPUT_NAME kafkad-client EXPORT_NAME client LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_link_libraries(kafkad_client PRIVATE ${client_libraries})
target_include_directories(kafkad_client INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(NOT ASAN AND NOT TSAN)
  target_link_options(kafkad_client PRIVATE -Wl,-z,defs)
endif()

set(client_static ${CMAKE_BINARY_DIR}/lib/libkafkad-client.a)
set(client_whole ${CMAKE_BINARY_DIR}/lib/kafkad-client.o)
file(WRITE ${CMAKE_BINARY_DIR}/archive_client.cmake "
file(REMOVE ${client_static})
execute_process(COMMAND ${CMAKE_AR} qcs ${client_static} ${client_whole} COMMAND_ERROR_IS_FATAL ANY)
")
add_custom_command(OUTPUT ${client_static}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib
  COMMAND ${CMAKE_LINKER} -r -o ${client_whole} ${client_objects}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${client_whole}
  COMMAND ${CMAKE_COMMAND} -P ${CMAKE_BINARY_DIR}/archive_client.cmake
  DEPENDS room_base room_protocol room_net room_client ${client_objects}
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(kafkad_client_static ALL DEPENDS ${client_static})
