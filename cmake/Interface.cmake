# Holds what libtapescope.so exports, functions and the types that they reach, to the committed
# description of it (libabigail's XML), or writes that anew.
#   cmake -DROOT=... -DLIBRARY=<file> -DGENERATED=<folder> [-DWRITE=ON] -P Interface.cmake
cmake_minimum_required(VERSION 3.25)

find_program(ABIDW abidw)
find_program(ABIDIFF abidiff)
if(NOT ABIDW OR NOT ABIDIFF)
  message(FATAL_ERROR "abidw and abidiff are missing: scripts/install-deps --tests")
endif()

set(committed "${ROOT}/ad/interface.abi")
set(found "${LIBRARY}.abi")
if(WRITE)
  set(found "${committed}")
endif()

# Types that no public header names are the library's own affair. Folders and lines are left out.
execute_process(COMMAND "${ABIDW}" --headers-dir "${ROOT}/ad/include/tapescope"
    --headers-dir "${GENERATED}/tapescope" --drop-private-types --exported-interfaces-only
    --drop-undefined-syms --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed
    --type-id-style hash --out-file "${found}" "${LIBRARY}"
  COMMAND_ERROR_IS_FATAL ANY)
file(READ "${found}" text)
string(REPLACE "${ROOT}/" "" text "${text}")
file(WRITE "${found}" "${text}")
if(WRITE)
  return()
endif()

# Two descriptions are compared: abidiff 2.2 overlooks changed values of enums and sizes of structs
# where one side is the library itself. FILE's fields are the C library's (interface.supp).
execute_process(COMMAND "${ABIDIFF}" --no-show-locs --harmless --redundant
    --suppressions "${ROOT}/cmake/interface.supp" "${committed}" "${found}"
  OUTPUT_VARIABLE report ERROR_VARIABLE report RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(NOTICE "${report}")
  message(FATAL_ERROR "The exported interface is not that of ad/interface.abi. A change of it is a "
    "decision: it gets a page in docs/decisions (031 has the rule), a row in CHANGELOG.md, and a "
    "new description, by\n  cmake --build --preset dev --target tapescope_interface")
endif()
