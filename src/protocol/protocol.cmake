# Generates structs and field tables from messages/*.msg: one header and one source per file, and table.c.
# Sets protocol_generated (sources of the room) and PROTOCOL_GEN_DIR (include path for "protocol/msg/x.h").
# The headers are sources of the room too, so every room above waits for them before it compiles.
set(PROTOCOL_GEN_DIR ${CMAKE_BINARY_DIR}/gen)
file(GLOB protocol_schemas CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/protocol/messages/*.msg)
set(protocol_generated ${PROTOCOL_GEN_DIR}/protocol/msg/table.c)
foreach(schema ${protocol_schemas})
  get_filename_component(stem ${schema} NAME_WE)
  list(APPEND protocol_generated
    ${PROTOCOL_GEN_DIR}/protocol/msg/${stem}.c ${PROTOCOL_GEN_DIR}/protocol/msg/${stem}.h)
endforeach()
set(protocol_gen_scripts ${CMAKE_CURRENT_SOURCE_DIR}/protocol/gen/msgc.py
  ${CMAKE_CURRENT_SOURCE_DIR}/protocol/gen/msg_schema.py)

add_custom_command(OUTPUT ${protocol_generated}
  COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1
    ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/protocol/gen/msgc.py ${PROTOCOL_GEN_DIR} ${protocol_schemas}
  DEPENDS ${protocol_schemas} ${protocol_gen_scripts}
  COMMENT "protocol: structs and tables from messages/*.msg" VERBATIM)
add_custom_target(protocol_messages DEPENDS ${protocol_generated})
