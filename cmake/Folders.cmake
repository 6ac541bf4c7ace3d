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

folder(kernels                                                   LIBRARIES cblas)
folder(tape/hook)
folder(tape               USES kernels tape/hook)
folder(ad                 USES tape tape/hook kernels)
folder(ad/generate        USES kernels)
folder(profiler/file                                             LIBRARIES protobuf_c zlib)
folder(profiler/collect   USES tape/hook profiler/file           LIBRARIES protobuf_c unwind)
folder(profiler/symbols                                          LIBRARIES dw elf)
folder(profiler/format    USES profiler/file                     LIBRARIES protobuf_c zlib)
folder(profiler/analyze   USES profiler/format profiler/symbols)
folder(profiler/report    USES profiler/analyze)
folder(profiler/report/html USES profiler/report profiler/analyze profiler/format
                                                                 LIBRARIES zlib)
folder(profiler/export    USES profiler/report profiler/analyze  LIBRARIES protobuf_c zlib)
folder(profiler/serve                                            LIBRARIES microhttpd)
folder(profiler/cli       USES profiler/serve profiler/export profiler/report profiler/report/html
                               profiler/analyze profiler/format)

# Further folders whose headers belong to a declared one: inside it, or made by the build.
file(GLOB op_folders LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/kernels/ops/*"
  "${PROJECT_SOURCE_DIR}/kernels/elementwise")
set(FOLDER_PARTS_kernels ${op_folders} "${TAPESCOPE_GENERATED_DIR}/kernels")

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

# folder_sources(<variable> <folder> [<without>...]): the C files of the current folder, found
# again at every build; a name given after the folder is left out.
function(folder_sources variable path)
  file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${path}/*.c")
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
