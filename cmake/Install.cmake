# cmake --install build --prefix P: programs to P/bin, settings to P/etc/kafkad, manual pages, bash completion, the client
# library with its headers, pkg-config file and CMake package, the systemd unit. Nothing that is installed names the build's own prefix.
include(CMakePackageConfigHelpers)

foreach(name ${tool_names})
  list(APPEND installed_programs ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name})
  list(APPEND installed_links ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}.sh)
endforeach()
install(PROGRAMS ${installed_programs} TYPE BIN)
install(FILES ${installed_links} TYPE BIN) # links stay links
if(TARGET kafkad)
  install(TARGETS kafkad)
endif()

# Manual pages; bash completion, found by the name of each command.
foreach(page ${manual_pages})
  string(REGEX REPLACE ".*\\." "" section ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
set(completion_dir ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completion} DESTINATION ${completion_dir})
get_filename_component(links ${completion} DIRECTORY)
file(MAKE_DIRECTORY ${links})
foreach(name ${tool_names})
  foreach(suffix "" .sh)
    file(CREATE_LINK kafkad ${links}/${name}${suffix} SYMBOLIC)
    install(FILES ${links}/${name}${suffix} DESTINATION ${completion_dir})
  endforeach()
endforeach()

install(DIRECTORY config/ DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/kafkad PATTERN kafkad.service EXCLUDE)
# The unit needs absolute paths, which are known when it is installed.
install(CODE "
  file(READ \"${CMAKE_SOURCE_DIR}/config/kafkad.service\" unit)
  string(REPLACE \"/usr/local/etc\" \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_SYSCONFDIR}\" unit \"\${unit}\")
  string(REPLACE \"/usr/local/bin\" \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\" unit \"\${unit}\")
  file(WRITE \"${CMAKE_BINARY_DIR}/kafkad.service\" \"\${unit}\")")
install(FILES ${CMAKE_BINARY_DIR}/kafkad.service DESTINATION lib/systemd/system)

# ---- client library ----
install(DIRECTORY include/kafka TYPE INCLUDE)
install(TARGETS kafkad_client EXPORT KafkadClient LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${client_static} DESTINATION ${CMAKE_INSTALL_LIBDIR})

# From the folder of the pkg-config file back to the prefix, so that the whole can be moved.
file(RELATIVE_PATH client_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/kafkad-client.pc.in ${CMAKE_BINARY_DIR}/kafkad-client.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kafkad-client.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(client_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/KafkadClient)
configure_package_config_file(cmake/KafkadClientConfig.cmake.in ${CMAKE_BINARY_DIR}/KafkadClientConfig.cmake
  INSTALL_DESTINATION ${client_cmake_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/KafkadClientConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT KafkadClient NAMESPACE kafkad:: FILE KafkadClientTargets.cmake DESTINATION ${client_cmake_dir})
install(FILES ${CMAKE_BINARY_DIR}/KafkadClientConfig.cmake ${CMAKE_BINARY_DIR}/KafkadClientConfigVersion.cmake
  DESTINATION ${client_cmake_dir})
