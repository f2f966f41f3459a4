# The libraries we build on, all from the distribution's packages.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter) # generates the protocol code
foreach(lib libuv liblz4 libzstd jansson openssl)
  pkg_check_modules(${lib} REQUIRED IMPORTED_TARGET ${lib})
endforeach()
find_library(SNAPPY_LIBRARY snappy REQUIRED)
add_library(snappy_lib INTERFACE)
target_link_libraries(snappy_lib INTERFACE ${SNAPPY_LIBRARY})
find_library(ZOOKEEPER_LIBRARY zookeeper_mt REQUIRED) # has no .pc file
add_library(zookeeper_lib INTERFACE)
target_link_libraries(zookeeper_lib INTERFACE ${ZOOKEEPER_LIBRARY})
if(KAFKAD_TESTS)
  pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka)
endif()
