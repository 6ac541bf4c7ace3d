# Looks into the shared library: it needs only what the design allows, has its soname, shows nothing
# but the public names and reads no environment of the unprivileged. Variables: LIBRARY, READELF,
# SONAME.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${READELF}" --wide --dynamic "${LIBRARY}"
  OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${READELF}" --wide --dyn-syms "${LIBRARY}"
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)

set(wrong 0)
macro(complain)
  message(NOTICE ${ARGN})
  math(EXPR wrong "${wrong} + 1")
endmacro()

string(FIND "${dynamic}" "[${SONAME}]" named)
if(NOT dynamic MATCHES "\\(SONAME\\)" OR named LESS 0)
  complain("the soname is not ${SONAME}")
endif()

string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*\\[[^]\n]*" needed "${dynamic}")
foreach(line IN LISTS needed)
  string(REGEX REPLACE ".*\\[" "" name "${line}")
  if(NOT name MATCHES "^(libopenblas|libmvec|libm|libz|libdl|libpthread|libc|ld-linux.*)\\.so")
    complain("the library needs ${name}")
  endif()
endforeach()

# What each thread has of its own lies where dlopen() of a library that needs this one finds some 1600
# bytes for all libraries (glibc's rtld.optional_static_tls).
execute_process(COMMAND "${READELF}" --wide --segments "${LIBRARY}"
  OUTPUT_VARIABLE segments COMMAND_ERROR_IS_FATAL ANY)
if(segments MATCHES " TLS +0x[0-9a-f]+ +0x[0-9a-f]+ +0x[0-9a-f]+ +0x[0-9a-f]+ +(0x[0-9a-f]+)")
  math(EXPR own "${CMAKE_MATCH_1}")
  if(own GREATER 1400)
    complain("a thread has ${own} bytes of its own in the library, at most 1400")
  endif()
else()
  complain("what a thread has of its own was not found")
endif()

string(REPLACE ";" "," symbols "${symbols}")
string(REPLACE "\n" ";" symbols "${symbols}")
set(count 0)
foreach(line IN LISTS symbols)
  # Num: Value Size Type Bind Vis Ndx Name; UND is what the library takes from others.
  if(line MATCHES "^ *[0-9]+: +[0-9a-f]+ +[^ ]+ +[A-Z]+ +(GLOBAL|WEAK|UNIQUE) +[A-Z]+ +([^ ]+) +([^ @]+)"
      AND NOT CMAKE_MATCH_2 STREQUAL "UND")
    math(EXPR count "${count} + 1")
    if(NOT CMAKE_MATCH_3 MATCHES "^ad_")
      complain("the library exports ${CMAKE_MATCH_3}")
    endif()
  endif()
endforeach()
# A program that has more rights than whoever starts it does not take orders from the environment.
if(symbols MATCHES " UND getenv(@|;)")
  complain("the library calls getenv, not secure_getenv")
endif()
if(count EQUAL 0)
  complain("the library exports nothing")
endif()
if(wrong GREATER 0)
  message(FATAL_ERROR "${wrong} faults in ${LIBRARY}")
endif()
message(STATUS "${count} public symbols")
