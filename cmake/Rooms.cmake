# A room is one folder of src/ and one static library. It sees the headers of the rooms it names in
# DEPENDS and no others: each room's headers are reached through a folder of their own that holds one link
# (rooms/log/log -> src/log), and only the folders of the named rooms are on the include path. An include
# that goes the wrong way therefore does not compile.
set(ROOMS_DIR ${CMAKE_BINARY_DIR}/rooms)

function(room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS;LIBRARIES;INCLUDES" ${ARGN})
  file(MAKE_DIRECTORY ${ROOMS_DIR}/${name})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${ROOMS_DIR}/${name}/${name} SYMBOLIC)
  add_library(room_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(room_${name} PUBLIC ${ROOMS_DIR}/${name} ${ROOM_INCLUDES})
  foreach(dep ${ROOM_DEPENDS})
    target_link_libraries(room_${name} PUBLIC room_${dep})
  endforeach()
  target_link_libraries(room_${name} PUBLIC ${ROOM_LIBRARIES} Threads::Threads)
endfunction()
