# The house: which folder may use which. Include paths are made from this table, and the test
# `house.includes` (cmake/CheckIncludes.cmake) compares every #include in the tree with it.

set(TAPESCOPE_FOLDERS "" CACHE INTERNAL "")

# folder(<path> [USES <folder>...] [LIBRARIES <name>...]): declares a folder, the folders whose
# headers it may name, and the outside libraries (dep_<name>) whose headers it may name.
macro(folder path)
  cmake_parse_arguments(FOLDER "" "" "USES;LIBRARIES" ${ARGN})
  list(APPEND TAPESCOPE_FOLDERS ${path})
  set(FOLDER_USES_${path} ${FOLDER_USES})
  set(FOLDER_LIBRARIES_${path} ${FOLDER_LIBRARIES})
endmacro()

folder(base)
folder(kernels                                                   LIBRARIES cblas)
# What tape, ad and both wings of the profiler must agree on: lists and names, no modules, so
# that each may use it without using another.
folder(profiler/contract)
folder(tape/hook          USES profiler/contract)
folder(tape/core          USES kernels tape/hook)
folder(tape/memory        USES tape/core kernels tape/hook profiler/contract)
folder(tape/observe       USES tape/sweep tape/core kernels tape/hook)
folder(tape/sweep         USES tape/memory tape/core kernels tape/hook)
folder(tape/kinds         USES tape/sweep tape/observe tape/memory tape/core kernels tape/hook)
folder(tape/scalar        USES tape/kinds tape/sweep tape/observe tape/memory tape/core kernels
                               tape/hook)
folder(tape               USES tape/scalar tape/kinds tape/sweep tape/observe tape/memory tape/core
                               kernels tape/hook)
folder(ad                 USES tape tape/scalar tape/kinds tape/sweep tape/observe tape/memory
                               tape/core tape/hook kernels profiler/contract
                                                                 LIBRARIES zlib)
folder(ad/generate        USES kernels)
folder(profiler/protocol                                         LIBRARIES protobuf_c zlib)
folder(profiler/unwind                                           LIBRARIES unwind)
folder(profiler/collect   USES profiler/contract tape/hook profiler/protocol profiler/unwind LIBRARIES protobuf_c)
folder(profiler/symbols   USES base                              LIBRARIES dw elf)
folder(profiler/read      USES base profiler/contract profiler/protocol LIBRARIES protobuf_c zlib)
folder(profiler/analyze   USES base profiler/contract profiler/read profiler/symbols)
folder(profiler/report/text USES base profiler/analyze)
folder(profiler/report/html USES base profiler/report/text profiler/analyze profiler/read
                                                                 LIBRARIES zlib)
folder(profiler/export    USES base profiler/report/text profiler/analyze
                                                                 LIBRARIES protobuf_c zlib)
folder(profiler/cli       USES base profiler/contract profiler/export
                               profiler/report/text
                               profiler/report/html profiler/analyze profiler/read)
folder(plain/pass         USES base                              LIBRARIES llvm)
folder(plain/runtime      USES ad                                LIBRARIES cblas)
folder(ode                USES ad                                LIBRARIES sundials)
folder(mpi                USES ad                                LIBRARIES mpi)

# Further folders whose headers belong to a declared one: inside it, or made by the build.
foreach(path kernels tape ad profiler/cli)
  file(GLOB_RECURSE FOLDER_PARTS_${path} LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/${path}/*")
  list(FILTER FOLDER_PARTS_${path} EXCLUDE REGEX "\\.[a-z]+$|\\.txt$|/include/|/tape/hook$|/ad/(include|generate)$")
endforeach()
list(APPEND FOLDER_PARTS_kernels "${TAPESCOPE_GENERATED_DIR}/kernels")

# folder_closure(<variable> <folder>): the folder, what it uses, and what those use.
function(folder_closure variable path)
  set(result ${path})
  foreach(used IN LISTS FOLDER_USES_${path})
    folder_closure(more ${used})
    list(APPEND result ${more})
  endforeach()
  list(REMOVE_DUPLICATES result)
  set(${variable} ${result} PARENT_SCOPE)
endfunction()

# folder_include(<target> <folder>): puts on the target's include path the folder and what it
# stands on. A header may name a header of the folder below, so the path follows the arrows.
function(folder_include target path)
  folder_closure(folders ${path})
  foreach(used IN LISTS folders)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/${used}"
      ${FOLDER_PARTS_${used}})
  endforeach()
endfunction()

# folder_sources(<variable> <folder> [<without>...]): the C files of a folder and of its parts,
# found again at every build; a name given after the folder is left out.
function(folder_sources variable path)
  set(patterns "${PROJECT_SOURCE_DIR}/${path}/*.c")
  foreach(part IN LISTS FOLDER_PARTS_${path})
    list(APPEND patterns "${part}/*.c")
  endforeach()
  file(GLOB found CONFIGURE_DEPENDS ${patterns})
  foreach(name IN LISTS ARGN)
    list(FILTER found EXCLUDE REGEX "/${name}$")
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# folder_library(<target> <type> <folder> <source>...): a library that obeys the table.
function(folder_library target type path)
  add_library(${target} ${type} ${ARGN})
  folder_include(${target} ${path})
  target_link_libraries(${target} PRIVATE tapescope_warnings)
  if(TAPESCOPE_FUZZED AND path MATCHES "^profiler/(protocol|read|symbols|analyze|report|export)")
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  # To optimise what two sanitizers have been put into takes clang three quarters of its time, and
  # saves the tests less, but for loops, tapes and the reader, which is fuzzed.
  if(TAPESCOPE_FUZZED AND path MATCHES "^(ad|profiler/(report|export|cli))")
    target_compile_options(${target} PRIVATE -O0)
  endif()
  foreach(name IN LISTS FOLDER_LIBRARIES_${path})
    target_link_libraries(${target} PRIVATE dep_${name})
  endforeach()
endfunction()

# folder_frame_pointers(<target>): its functions keep the frame pointer, so that a call path can be
# followed along them through the library into the program.
function(folder_frame_pointers target)
  target_compile_options(${target} PRIVATE -fno-omit-frame-pointer)
endfunction()

# folder_module(<target> <folder> <file name> <source>...): an object that is loaded at run time,
# beside the library.
function(folder_module target path file_name)
  folder_library(${target} MODULE ${path} ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${file_name}
    LIBRARY_OUTPUT_DIRECTORY "${TAPESCOPE_MODULE_OUTPUT_DIRECTORY}")
endfunction()

# folder_extension(<folder> <library>): libtapescope_<folder>, over the interface of libtapescope and
# a library of others, dep_<library>.
function(folder_extension path library)
  set(objects tapescope_${path}_objects)
  folder_sources(sources ${path})
  folder_library(${objects} OBJECT ${path} ${sources})
  target_include_directories(${objects} PRIVATE "${PROJECT_SOURCE_DIR}/ad/include"
    "${PROJECT_SOURCE_DIR}/${path}/include" "${TAPESCOPE_GENERATED_INCLUDE_DIR}")
  add_dependencies(${objects} tapescope_ad)
  folder_frame_pointers(${objects})

  add_library(tapescope_${path} SHARED $<TARGET_OBJECTS:${objects}>)
  target_include_directories(tapescope_${path} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${path}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(tapescope_${path} PUBLIC tapescope PRIVATE dep_${library} m)
  set_target_properties(tapescope_${path} PROPERTIES LINKER_LANGUAGE C INSTALL_RPATH "$ORIGIN"
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endfunction()
