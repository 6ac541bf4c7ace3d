# Language, flags and output folders that hold for every target.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
# One system interface for all: glibc's.
add_compile_definitions(_GNU_SOURCE)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Kind of build" FORCE)
endif()
# Line tables are what the profiler reports by, so every kind of build has them.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-Og -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(TAPESCOPE_MODULE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/tapescope")

# Headers that the build makes: the public ones, and those that only the library sees.
set(TAPESCOPE_GENERATED_INCLUDE_DIR "${PROJECT_BINARY_DIR}/generated/include")
set(TAPESCOPE_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated/private")
file(MAKE_DIRECTORY "${TAPESCOPE_GENERATED_INCLUDE_DIR}/tapescope" "${TAPESCOPE_GENERATED_DIR}")

# What a small op or tape waits for. A struct of more than some words gcc sets by `rep stos` or `rep
# movs`: these are plain stores, and calls of memset and memcpy for the rest. And it pairs words: a
# load of 16 bytes waits until two stores of 8 are in the cache.
set(TAPESCOPE_PLAIN_STORES "")
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(TAPESCOPE_PLAIN_STORES -mmemset-strategy=libcall:-1:noalign
    -mmemcpy-strategy=libcall:-1:noalign -fno-tree-slp-vectorize)
endif()

add_library(tapescope_warnings INTERFACE)
target_compile_options(tapescope_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow
  -Wstrict-prototypes -Wmissing-prototypes>)

# libFuzzer is clang's. It needs counters in what it is to explore: the reader's folders.
set(TAPESCOPE_FUZZED OFF)
if(TAPESCOPE_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
  set(TAPESCOPE_FUZZED ON)
  # Shared, as gcc's is: tests put functions of theirs before the sanitizer's malloc.
  execute_process(COMMAND "${CMAKE_C_COMPILER}" -print-file-name=libclang_rt.asan-x86_64.so
    OUTPUT_VARIABLE asan_library OUTPUT_STRIP_TRAILING_WHITESPACE)
  get_filename_component(asan_folder "${asan_library}" DIRECTORY)
  set(TAPESCOPE_SANITIZE_LINK -shared-libasan "-Wl,-rpath,${asan_folder}")
endif()

if(TAPESCOPE_SANITIZE)
  add_compile_options(-fsanitize=${TAPESCOPE_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  # Where variables lie takes gcc most of its time then (test_real.c: 5 s without, 91 s with); lines
  # stay.
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fno-var-tracking)
  endif()
  add_link_options(-fsanitize=${TAPESCOPE_SANITIZE} ${TAPESCOPE_SANITIZE_LINK})
else()
  # The sanitizers' own symbols stay open until the program is linked, so only here.
  add_link_options($<$<IN_LIST:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY$<SEMICOLON>MODULE_LIBRARY>:LINKER:--no-undefined>)
endif()
