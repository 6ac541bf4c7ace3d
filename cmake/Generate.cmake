# Runs PROGRAM WHAT and puts what it prints into OUTPUT. The file appears whole or not at all, and
# keeps its time when nothing changed, so that a new op recompiles only what it must.
# Variables: PROGRAM, WHAT, OUTPUT.

set(part "${OUTPUT}.part")
get_filename_component(folder "${OUTPUT}" DIRECTORY)
file(MAKE_DIRECTORY "${folder}")
execute_process(COMMAND "${PROGRAM}" "${WHAT}" OUTPUT_FILE "${part}" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  file(REMOVE "${part}")
  message(FATAL_ERROR "${PROGRAM} ${WHAT}: ${status}")
endif()
if(EXISTS "${OUTPUT}")
  file(SHA256 "${OUTPUT}" old)
  file(SHA256 "${part}" new)
  if(old STREQUAL new)
    file(REMOVE "${part}")
    return()
  endif()
endif()
file(RENAME "${part}" "${OUTPUT}")
