# Fails with one line for each name that is taken twice in the house: of structs, unions and enums
# anywhere, and of static functions in tape/ and profiler/, which carry their object, since a
# debugger, a profiler and a flame graph show nothing else. Variables: ROOT.
cmake_minimum_required(VERSION 3.25)

set(wrong 0)
macro(complain)
  message(NOTICE ${ARGN})
  math(EXPR wrong "${wrong} + 1")
endmacro()

# take(<kind> <name> <file>): the name is the file's now. In one file the compiler looks after it, and
# what is declared ahead or written once for each machine stands there twice.
macro(take kind name file)
  if(DEFINED ${kind}_${name} AND NOT ${kind}_${name} STREQUAL "${file}")
    complain("${file}: there is a ${kind} ${name} already, in ${${kind}_${name}}")
  endif()
  set(${kind}_${name} "${file}")
endmacro()

set(patterns "")
foreach(top base kernels tape ad ode mpi plain profiler)
  list(APPEND patterns "${ROOT}/${top}/*.c" "${ROOT}/${top}/*.h" "${ROOT}/${top}/*.inc")
endforeach()
file(GLOB_RECURSE files RELATIVE "${ROOT}" ${patterns})
foreach(file IN LISTS files)
  file(STRINGS "${ROOT}/${file}" lines
    REGEX "^(static |const |typedef | )*(struct|union|enum) [a-z0-9_]+ {")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^.*(struct|union|enum) ([a-z0-9_]+) {.*$" "\\2" name "${line}")
    take(type ${name} "${file}")
  endforeach()
  if(file MATCHES "^(tape|profiler)/")
    file(STRINGS "${ROOT}/${file}" lines REGEX "^static [^=;(]*[ *][a-z0-9_]+\\(")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^static [^=;(]*[ *]([a-z0-9_]+)\\(.*$" "\\1" name "${line}")
      if(NOT name MATCHES "_")
        complain("${file}: the static function ${name} says nothing of its object")
      endif()
      take(function ${name} "${file}")
    endforeach()
  endif()
endforeach()

list(LENGTH files count)
if(wrong GREATER 0)
  message(FATAL_ERROR "${wrong} faults in the names of ${count} files")
endif()
message(STATUS "${count} files, every name is taken once")
