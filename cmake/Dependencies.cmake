# The libraries that folders may use, each as one interface target `dep_<name>`.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
set(DEP_HINT "scripts/install-deps installs what is missing on Debian")

# dep_from_pkgconfig(<name> <pkg-config module>): a required library.
function(dep_from_pkgconfig name module)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "${module} was not found; ${DEP_HINT}")
  endif()
  add_library(dep_${name} INTERFACE)
  target_link_libraries(dep_${name} INTERFACE PkgConfig::${name})
endfunction()

# OpenBLAS: its pkg-config file where there is one, otherwise the header and the library.
pkg_check_modules(cblas QUIET IMPORTED_TARGET openblas)
add_library(dep_cblas INTERFACE)
if(cblas_FOUND)
  target_link_libraries(dep_cblas INTERFACE PkgConfig::cblas)
else()
  find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
  find_library(CBLAS_LIBRARY openblas)
  if(NOT CBLAS_INCLUDE_DIR OR NOT CBLAS_LIBRARY)
    message(FATAL_ERROR "OpenBLAS was not found; ${DEP_HINT}")
  endif()
  target_include_directories(dep_cblas SYSTEM INTERFACE "${CBLAS_INCLUDE_DIR}")
  target_link_libraries(dep_cblas INTERFACE "${CBLAS_LIBRARY}")
endif()

# The C library's mathematics, with its vector functions where it has them.
add_library(dep_math INTERFACE)
find_library(MVEC_LIBRARY mvec)
if(MVEC_LIBRARY)
  target_link_libraries(dep_math INTERFACE "${MVEC_LIBRARY}")
endif()
target_link_libraries(dep_math INTERFACE m)

dep_from_pkgconfig(dw libdw)
dep_from_pkgconfig(elf libelf)
dep_from_pkgconfig(protobuf_c libprotobuf-c)
dep_from_pkgconfig(zlib zlib)
dep_from_pkgconfig(unwind libunwind)
if(BUILD_TESTING)
  dep_from_pkgconfig(check check)
  dep_from_pkgconfig(nlopt nlopt) # for examples/optimisers; a test runs them
else()
  pkg_check_modules(nlopt QUIET IMPORTED_TARGET nlopt)
  if(nlopt_FOUND)
    add_library(dep_nlopt INTERFACE)
    target_link_libraries(dep_nlopt INTERFACE PkgConfig::nlopt)
  endif()
endif()

find_program(PROTOC_C NAMES protoc-c)
if(NOT PROTOC_C)
  message(FATAL_ERROR "protoc-c was not found; ${DEP_HINT}")
endif()
