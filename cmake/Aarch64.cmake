# Toolchain for 64-bit ARM, by Debian's cross compiler. Only the library is built with it, to see
# that it compiles there (the preset `aarch64`): headers of OpenBLAS come from the machine that
# builds, and nothing is linked or run.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
