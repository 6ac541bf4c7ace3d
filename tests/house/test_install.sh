#!/bin/sh
# test_install.sh: an installation in a folder with a space, used as others would use it: from C and
# C++, by find_package and by pkg-config, shared and static; recorded and reported by the installed
# program. Then the same for the Debian package, unpacked, and where possible installed and removed.
set -eu
LC_ALL=C
export LC_ALL
unset TAPESCOPE_PROFILE TAPESCOPE_MODULE_DIR TAPESCOPE_MODULE_HINT
unset PKG_CONFIG_PATH PKG_CONFIG_LIBDIR
work="$TEST_BINARY_DIR/in stall"
consumer="$TAPESCOPE_SOURCE_DIR/tests/consumer"
rm -rf "$work"
mkdir -p "$work"
cd "$work"

fail()
{
    echo "FAILED: $*"
    exit 1
}

quietly()
{
    "$@" >log 2>&1 || {
        cat log
        fail "$*"
    }
}

quietly cmake --install "$TAPESCOPE_BINARY_DIR" --prefix "$work/first"
# Whatever was installed must not know where: all that follows uses the moved folder.
mv first prefix
libdir=$(dirname "$(find "$work/prefix" -name libtapescope.a)")
tapescope="$work/prefix/bin/tapescope"
[ -f "$libdir/libtapescope.so.0.2" ] || fail "no libtapescope.so.0.2"
if grep -rlF "$TAPESCOPE_BINARY_DIR" "$libdir/cmake" "$libdir/pkgconfig" "$work/prefix/include"; then
    fail "an installed file names the build folder"
fi

# The docs lie where the program finds them; what leads from one of its pages to another leads somewhere.
"$tapescope" help profile#roofline >out && [ "$(head -n 1 out)" = '## Roofline' ] || fail "help has no docs: $(cat out)"
docs=$(dirname "$(find "$work/prefix/share" -path '*/how-to/profile.md')")
for page in $(grep -oh '](\.\./[a-z-]*/[A-Za-z0-9_-]*\.[a-z]*' "$docs"/*.md | sed 's/^](//' | sort -u); do
    [ -f "$docs/$page" ] || fail "no $page among the docs"
done

# The archive shows the public names alone, and needs none of its own.
if [ -z "$TEST_SANITIZE_FLAGS" ]; then
    nm -g --defined-only "$libdir/libtapescope.a" | awk 'NF == 3 { print $3 }' >names
    grep -q '^ad_backward_site$' names || fail "the static library lacks ad_backward_site"
    grep -v '^ad_' names && fail "the static library shows more than ad_*"
    nm -u "$libdir/libtapescope.a" | grep -E ' (ad|tape|kernel)_' && fail "an open name of its own"
fi

# check PROGRAM SOURCE [FOLDER/]: it runs, and a profile of it names the line that costs.
check()
{
    line=$(grep -n 'the line that costs' "$consumer/${3-}$2" | cut -d: -f1)
    "$1" >out || fail "$1"
    grep -q "^tapescope $version" out || fail "$1 ran with $(cat out)"
    rm -f consumer.prof
    quietly "$tapescope" record -o consumer.prof -- "$1"
    quietly "$tapescope" top consumer.prof
    grep -q "$2:$line " log || {
        cat log
        fail "top does not name $2:$line of $1"
    }
}

# Plain C, by the installed compiler command.
if [ "$TAPESCOPE_PLAIN" = ON ]; then
    quietly "$tapescope" cc -O1 -g -DPLAIN_MAIN -c "$TAPESCOPE_SOURCE_DIR/tests/programs/plain_lines.c" -o main.o
    quietly "$tapescope" cc -O1 -g "$TAPESCOPE_SOURCE_DIR/tests/programs/plain_lines.c" main.o -o plain
    quietly ./plain
    # What is missing is named, with the package.
    mkdir none
    if PATH=$work/none "$tapescope" cc -c x.c >log 2>&1 || ! grep -q "clang-19: .*Debian's package is clang-19" log; then
        fail "without clang-19: $(cat log)"
    fi
    mv "$libdir/tapescope/tapescope_plain_pass.so" none
    if "$tapescope" cc -c x.c >log 2>&1 || ! grep -q 'built without LLVM 19 (Debian: clang-19, llvm-19-dev)' log; then
        fail "without the plug-in: $(cat log)"
    fi
    mv none/tapescope_plain_pass.so "$libdir/tapescope"
fi

PKG_CONFIG_PATH="$libdir/pkgconfig"
export PKG_CONFIG_PATH
version=$(pkg-config --modversion tapescope)

# By find_package.
quietly cmake -S "$consumer" -B cmake -G Ninja "-DCMAKE_PREFIX_PATH=$work/prefix" \
    "-DCMAKE_C_COMPILER=$TEST_C_COMPILER" "-DCMAKE_CXX_COMPILER=$TEST_CXX_COMPILER" \
    "-DCMAKE_C_FLAGS=-g $TEST_SANITIZE_FLAGS" "-DCMAKE_CXX_FLAGS=-g $TEST_SANITIZE_FLAGS"
quietly cmake --build cmake
for kind in shared static; do
    check "$work/cmake/${kind}_c" consumer.c
    check "$work/cmake/${kind}_cxx" consumer.cpp
done
if [ "$TAPESCOPE_ODE" = ON ]; then
    check "$work/cmake/ode_c" ode.c
    nm -D --defined-only "$libdir/libtapescope_ode.so" | awk '{ print $3 }' >names
    [ "$(cat names)" = ad_ode_site ] || fail "libtapescope_ode shows $(cat names)"
elif [ -e "$work/prefix/include/tapescope/ad_ode.h" ]; then
    fail "a header without its library"
fi
# over_ranks PROGRAM: it runs on two ranks.
over_ranks()
{
    quietly env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$TEST_MPIEXEC" \
        --oversubscribe --mca btl self,vader --mca btl_vader_single_copy_mechanism none -n 2 "$1"
}
if [ "$TAPESCOPE_MPI" = ON ]; then
    over_ranks "$work/cmake/mpi_c"
    nm -D --defined-only "$libdir/libtapescope_mpi.so" | awk '{ print $3 }' >names
    grep -q '^ad_mpi_allreduce_site$' names || fail "libtapescope_mpi lacks ad_mpi_allreduce_site"
    grep -v '^ad_mpi_' names && fail "libtapescope_mpi shows more than ad_mpi_*"
elif [ -e "$work/prefix/include/tapescope/ad_mpi.h" ]; then
    fail "a header without its library"
fi
readelf -d cmake/shared_c | grep -q 'NEEDED.*\[libtapescope\.so\.0\.2\]' || fail "not linked shared"
readelf -d cmake/static_c | grep -q 'NEEDED.*libtapescope' && fail "not linked static"

# A target of a project of any compiler, by tapescope_differentiate; with makefiles too.
if [ "$TAPESCOPE_PLAIN" = ON ]; then
    for generator in Ninja "Unix Makefiles"; do
        quietly cmake -S "$consumer/plain" -B "plain $generator" -G "$generator" \
            "-DCMAKE_PREFIX_PATH=$work/prefix" "-DCMAKE_C_COMPILER=$TEST_C_COMPILER" -DCMAKE_C_FLAGS=-g
        quietly cmake --build "plain $generator" --verbose
        grep -q 'cc --in-place-of .*model\.c' log || fail "model.c was compiled by another"
        ! grep -q 'in-place-of .*main\.c' log || fail "main.c was compiled by tapescope cc"
        check "$work/plain $generator/gradient" model.c plain/
    done
    # CMake and make with CC alone, of a project that knows nothing of it.
    mkdir other
    cp "$TAPESCOPE_SOURCE_DIR/tests/programs/plain_lines.c" other/lines.c
    printf '#define PLAIN_MAIN\n#include "lines.c"\n' >other/main.c
    printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(other LANGUAGES C)' \
        'add_executable(other lines.c main.c)' 'target_link_libraries(other m)' >other/CMakeLists.txt
    printf 'other: lines.o main.o\n\t$(CC) $(CFLAGS) -o $@ $^ -lm\n' >other/Makefile
    (
        PATH=$work/prefix/bin:$PATH
        CC="tapescope cc"
        export PATH CC
        quietly cmake -S other -B "other cmake" -G Ninja -DCMAKE_C_FLAGS=-O1
        quietly cmake --build "other cmake"
        quietly "./other cmake/other"
        quietly make -C other CC="$CC" CFLAGS=-O1
        quietly other/other
    ) || exit 1
fi

# By pkg-config. Its words are escaped for a shell, hence eval.
# compile OUTPUT OPTION...: both languages with what pkg-config says; $library for -ltapescope.
library=-ltapescope
compile()
{
    output=$1
    shift
    flags=$(pkg-config --cflags --libs "$@" tapescope | sed "s/-ltapescope/$library/")
    case $flags in *unwind*) fail "a link line with -lunwind: $flags" ;; esac
    eval "quietly \"\$TEST_C_COMPILER\" -g $TEST_SANITIZE_FLAGS -o ${output}_c \
        \"\$consumer/consumer.c\" $flags -lm -Wl,-rpath,\"\$libdir\""
    eval "quietly \"\$TEST_CXX_COMPILER\" -g $TEST_SANITIZE_FLAGS -o ${output}_cxx \
        \"\$consumer/consumer.cpp\" $flags -Wl,-rpath,\"\$libdir\""
}
compile pkg_shared
case $flags in *openblas*) fail "a shared link line with what is private: $flags" ;; esac
check ./pkg_shared_c consumer.c
check ./pkg_shared_cxx consumer.cpp
if [ "$TAPESCOPE_ODE" = ON ]; then
    eval "quietly \"\$TEST_C_COMPILER\" -g $TEST_SANITIZE_FLAGS -o pkg_ode \
        \"\$consumer/ode.c\" $(pkg-config --cflags --libs tapescope_ode) -lm -Wl,-rpath,\"\$libdir\""
    check ./pkg_ode ode.c
fi
if [ "$TAPESCOPE_MPI" = ON ]; then
    eval "quietly env OMPI_CC=\"\$TEST_C_COMPILER\" mpicc -g $TEST_SANITIZE_FLAGS -o pkg_mpi \
        \"\$consumer/mpi.c\" $(pkg-config --cflags --libs tapescope_mpi) -Wl,-rpath,\"\$libdir\""
    over_ranks ./pkg_mpi
fi
readelf -d pkg_shared_c | grep -q 'NEEDED.*\[libtapescope\.so\.0\.2\]' || fail "not linked shared"

# Where there is no shared library, -ltapescope means the archive.
mkdir aside
mv "$libdir"/libtapescope.so* aside
compile pkg_static --static
check ./pkg_static_c consumer.c
check ./pkg_static_cxx consumer.cpp
readelf -d pkg_static_c | grep -q 'NEEDED.*libtapescope' && fail "not linked static"
mv aside/* "$libdir"

# Where both are, the page on installing names the archive in full.
library=-l:libtapescope.a
grep -qF -- "$library" "$TAPESCOPE_SOURCE_DIR/docs/how-to/install.md" || fail "the page does not say $library"
compile pkg_beside --static
check ./pkg_beside_c consumer.c
readelf -d pkg_beside_c | grep -q 'NEEDED.*libtapescope' && fail "not linked static"
library=-ltapescope

# The Debian package.
if ! command -v dpkg-deb >/dev/null; then
    echo "without the Debian package: no dpkg-deb"
    exit 0
fi
# Its libraries have debugging information, on which the usual compression takes a quarter of a minute.
quietly cpack --config "$TAPESCOPE_BINARY_DIR/CPackConfig.cmake" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$work/deb"
deb=$(ls deb/*.deb)
dpkg-deb -c "$deb" >list
for file in bin/tapescope libtapescope.so.0.2 libtapescope.a tapescope/tapescope-collect.so \
    tapescope/tapescope-symbols.so tapescope/ad.h tapescope/ad_ops.h tapescope.pc \
    tapescope-config.cmake; do
    grep -q "/$file\( \|\$\)" list || fail "the package lacks $file"
done
awk '$6 !~ /^\.\/(usr\/.*)?$/' list | grep . && fail "the package goes beyond /usr"
dpkg-deb -f "$deb" Depends | grep -q libopenblas || fail "the package does not depend on OpenBLAS"
dpkg -x "$deb" unpacked
libdir=$(dirname "$(find "$work/unpacked" -name libtapescope.a)")
tapescope="$work/unpacked/usr/bin/tapescope"
PKG_CONFIG_PATH="$libdir/pkgconfig"
compile deb
check ./deb_c consumer.c
check ./deb_cxx consumer.cpp

# Really installed, where that harms nobody; everything is gone afterwards. One test at a time, and
# dpkg may be at work for others.
# dpkg_patient OPTION...: waits for its lock.
dpkg_patient()
{
    attempt=1
    while [ $attempt -le 120 ]; do
        dpkg "$@" >log 2>&1 && return
        grep -q 'lock' log || break
        echo "attempt $attempt: dpkg is busy"
        attempt=$((attempt + 1))
        sleep 5
    done
    cat log
    fail "dpkg $*"
}

if [ "$(id -u)" -eq 0 ]; then
    exec 9>/run/lock/tapescope-test-install
    flock 9
fi
if [ "$(id -u)" -eq 0 ] && ! dpkg-query -W tapescope >/dev/null 2>&1 &&
    ! command -v tapescope >/dev/null; then
    trap 'dpkg --purge tapescope >/dev/null 2>&1' EXIT
    dpkg_patient -i "$deb"
    unset PKG_CONFIG_PATH
    tapescope=tapescope
    libdir=/usr/lib
    [ "$(pkg-config --modversion tapescope)" = "$version" ] || fail "pkg-config finds another"
    eval "quietly \"\$TEST_C_COMPILER\" -g $TEST_SANITIZE_FLAGS -o installed_c \
        \"\$consumer/consumer.c\" $(pkg-config --cflags --libs tapescope) -lm"
    check ./installed_c consumer.c
    dpkg_patient --purge tapescope
    sed -n 's|^[^d].* \./\(usr/[^ ]*\).*|/\1|p' list | while read -r file; do
        [ ! -e "$file" ] || fail "$file is left"
    done
    ldconfig -p | grep -q libtapescope && fail "the loader still knows the library"
    trap - EXIT
else
    echo "not installed: needs root and a system without tapescope"
fi
echo "all installations work"
