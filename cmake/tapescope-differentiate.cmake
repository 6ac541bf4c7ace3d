# tapescope_differentiate(<target>...): the C and C++ files of these targets are compiled by
# `tapescope cc` and `tapescope c++`, so that what they compute has gradients, and what is linked
# with them links the library for that. Whatever compiler the project has, others of its targets keep
# it. With Ninja and with makefiles. The sources know nothing of it; give -g for source lines.
function(tapescope_differentiate)
  find_program(TAPESCOPE_CLANG NAMES clang-19)
  mark_as_advanced(TAPESCOPE_CLANG)
  if(NOT TARGET tapescope::tapescope_plain)
    message(FATAL_ERROR "tapescope_differentiate: this Tapescope was built without LLVM 19 "
      "(Debian: clang-19, llvm-19-dev)")
  endif()
  if(NOT TAPESCOPE_CLANG)
    message(FATAL_ERROR "tapescope_differentiate: clang-19 was not found; Debian's package is "
      "clang-19")
  endif()
  foreach(target IN LISTS ARGN)
    if(NOT TARGET "${target}")
      message(FATAL_ERROR "tapescope_differentiate: there is no target ${target}")
    endif()
    # What was put before the compiler (a cache of its results) would stand before the wrong one.
    set_target_properties("${target}" PROPERTIES
      C_COMPILER_LAUNCHER "${tapescope_PROGRAM};cc;--in-place-of"
      CXX_COMPILER_LAUNCHER "${tapescope_PROGRAM};c++;--in-place-of"
      POSITION_INDEPENDENT_CODE ON)
    # As properties, since a target has either signature of target_link_libraries.
    set_property(TARGET "${target}" APPEND PROPERTY LINK_LIBRARIES tapescope::tapescope_plain)
    set_property(TARGET "${target}" APPEND PROPERTY
      INTERFACE_LINK_LIBRARIES tapescope::tapescope_plain)
  endforeach()
endfunction()
