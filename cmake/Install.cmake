# What `cmake --install` lays down: the libraries, the modules beside them, the headers, the
# program, and the files by which find_package(tapescope) and pkg-config find it; and the Debian
# package that `cpack` makes of it.
include(CMakePackageConfigHelpers)

# The modules are found from the library's own folder, so all of it can be moved as a whole.
install(TARGETS tapescope EXPORT tapescope
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_COMPONENT development)
# gdb reads what it prints of handles from beside a library in a folder that it trusts, and from its
# own folder under the library's path, which is that of a prefix /usr.
set(gdb_name "libtapescope.so.${PROJECT_VERSION}-gdb.py")
install(FILES "${PROJECT_SOURCE_DIR}/ad/gdb/tapescope-gdb.py"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}" RENAME "${gdb_name}")
install(FILES "${PROJECT_SOURCE_DIR}/ad/gdb/tapescope-gdb.py" RENAME "${gdb_name}" DESTINATION
  "${CMAKE_INSTALL_DATADIR}/gdb/auto-load/\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}")
# The archive that others link is one object in which all but the public names are local, so that
# a program's own names never meet the library's. The sanitizers' names must stay as they are.
if(TAPESCOPE_SANITIZE)
  install(TARGETS tapescope_static ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
else()
  set(archive_folder "${PROJECT_BINARY_DIR}/archive")
  file(MAKE_DIRECTORY "${archive_folder}")
  add_custom_command(OUTPUT "${archive_folder}/libtapescope.a"
    COMMAND "${CMAKE_LINKER}" -r --whole-archive "$<TARGET_FILE:tapescope_static>"
      -o "${archive_folder}/tapescope.o"
    COMMAND "${CMAKE_OBJCOPY}" --localize-hidden "${archive_folder}/tapescope.o"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${archive_folder}/libtapescope.a"
    COMMAND "${CMAKE_AR}" rcs "${archive_folder}/libtapescope.a"
      "${archive_folder}/tapescope.o"
    DEPENDS tapescope_static COMMENT "Hiding the names of the static library" VERBATIM)
  add_custom_target(tapescope_archive ALL DEPENDS "${archive_folder}/libtapescope.a")
  install(FILES "${archive_folder}/libtapescope.a" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(TARGETS tapescope_collect tapescope_symbols_module
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/tapescope")
if(TAPESCOPE_PLAIN)
  install(TARGETS tapescope_plain EXPORT tapescope
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_COMPONENT development)
  install(TARGETS tapescope_plain_pass LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/tapescope")
endif()
if(TAPESCOPE_ODE)
  install(TARGETS tapescope_ode EXPORT tapescope
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_COMPONENT development)
  install(FILES "${PROJECT_SOURCE_DIR}/ode/include/tapescope/ad_ode.h"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tapescope")
endif()
if(TAPESCOPE_MPI)
  install(TARGETS tapescope_mpi EXPORT tapescope
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_COMPONENT development)
  install(FILES "${PROJECT_SOURCE_DIR}/mpi/include/tapescope/ad_mpi.h"
    "${PROJECT_SOURCE_DIR}/mpi/include/tapescope/ad_mpi_real.h"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tapescope")
endif()
install(TARGETS tapescope_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
# The program prints its manual page and what shells complete it by; where it can be run, that is.
if(NOT CMAKE_CROSSCOMPILING AND NOT TAPESCOPE_SANITIZE)
  set(texts "${PROJECT_BINARY_DIR}/texts")
  file(MAKE_DIRECTORY "${texts}")
  add_custom_command(OUTPUT "${texts}/tapescope.1" "${texts}/tapescope"
      "${texts}/_tapescope" "${texts}/tapescope.fish"
    COMMAND tapescope_cli help --man > "${texts}/tapescope.1"
    COMMAND tapescope_cli help --completion bash > "${texts}/tapescope"
    COMMAND tapescope_cli help --completion zsh > "${texts}/_tapescope"
    COMMAND tapescope_cli help --completion fish > "${texts}/tapescope.fish"
    DEPENDS tapescope_cli COMMENT "Printing the manual page" VERBATIM)
  add_custom_target(tapescope_texts ALL DEPENDS "${texts}/tapescope.1")
  install(FILES "${texts}/tapescope.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${texts}/tapescope"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${texts}/_tapescope" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${texts}/tapescope.fish"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/ad/include/tapescope"
  "${TAPESCOPE_GENERATED_INCLUDE_DIR}/tapescope"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  RENAME copyright)
# What findings name, and `tapescope help` prints: pages, with what they lead to.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg" PATTERN site EXCLUDE)

# What the static library needs of the system, beside OpenBLAS and zlib.
set(static_libraries m ${CMAKE_DL_LIBS} pthread)
if(MVEC_LIBRARY)
  list(PREPEND static_libraries mvec)
endif()

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/tapescope")
install(EXPORT tapescope FILE tapescope-targets.cmake NAMESPACE tapescope::
  DESTINATION "${package}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/tapescope-config.cmake.in"
  "${PROJECT_BINARY_DIR}/tapescope-config.cmake" INSTALL_DESTINATION "${package}"
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tapescope-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tapescope-config.cmake"
  "${PROJECT_BINARY_DIR}/tapescope-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/tapescope-differentiate.cmake" DESTINATION "${package}")

# pkg-config's file finds the prefix from its own place, so that a moved installation works.
file(RELATIVE_PATH prefix_from_pc
  "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
set(private_libraries -lopenblas)
if(cblas_FOUND)
  set(private_libraries ${cblas_LDFLAGS})
endif()
foreach(library z ${static_libraries})
  list(APPEND private_libraries "-l${library}")
endforeach()
list(JOIN private_libraries " " private_libraries)
configure_file("${PROJECT_SOURCE_DIR}/cmake/tapescope.pc.in"
  "${PROJECT_BINARY_DIR}/tapescope.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tapescope.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(TAPESCOPE_ODE)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/tapescope_ode.pc.in"
    "${PROJECT_BINARY_DIR}/tapescope_ode.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/tapescope_ode.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
if(TAPESCOPE_MPI)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/tapescope_mpi.pc.in"
    "${PROJECT_BINARY_DIR}/tapescope_mpi.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/tapescope_mpi.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

# The Debian package, one for library, headers and program. Its dependencies are read from the
# objects where dpkg-shlibdeps is installed. Building it needs no root.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tapescope)
set(CPACK_PACKAGE_VENDOR Tapescope)
set(CPACK_PACKAGE_CONTACT "Tapescope maintainers <maintainers@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
  "reverse-mode automatic differentiation for C with a profiler")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(FILE_UTILITY file) # CPack finds the objects by it
mark_as_advanced(DPKG_SHLIBDEPS FILE_UTILITY)
if(DPKG_SHLIBDEPS AND FILE_UTILITY)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "libc6, libopenblas0, libdw1, libelf1, libprotobuf-c1, libunwind8, zlib1g")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas-dev, zlib1g-dev")
include(CPack)
