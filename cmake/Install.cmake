# What `cmake --install` lays down: the libraries, the modules beside them, the headers, the
# program, and the files by which find_package(tapescope) and pkg-config find it.
include(CMakePackageConfigHelpers)

# The modules are found from the library's own folder, so all of it can be moved as a whole.
install(TARGETS tapescope EXPORT tapescope
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_COMPONENT development)
install(TARGETS tapescope_static ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS tapescope_collect tapescope_symbols_module
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/tapescope")
install(TARGETS tapescope_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/ad/include/tapescope"
  "${TAPESCOPE_GENERATED_INCLUDE_DIR}/tapescope"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/tapescope")
install(EXPORT tapescope FILE tapescope-config.cmake NAMESPACE tapescope::
  DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tapescope-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tapescope-config-version.cmake" DESTINATION "${package}")

# pkg-config's file finds the prefix from its own place, so that a moved installation works.
file(RELATIVE_PATH prefix_from_pc
  "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
set(vector_library "")
if(MVEC_LIBRARY)
  set(vector_library "-lmvec")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/tapescope.pc.in"
  "${PROJECT_BINARY_DIR}/tapescope.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tapescope.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
