# Generates structs and field tables from messages/*.msg: one header and one source per API.
set(PROTOCOL_GEN_DIR ${CMAKE_BINARY_DIR}/gen)
set(protocol_generated)
