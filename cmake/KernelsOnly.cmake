# The kernels and their tests: what a processor that this machine only emulates
# can be tested with, since Debian's libraries are installed for one processor.

enable_testing()

# Debian ships googletest as sources, too. Before our warnings are on.
set(BUILD_GMOCK ON)
set(INSTALL_GTEST OFF)
add_subdirectory(/usr/src/googletest googletest EXCLUDE_FROM_ALL)

include(Toolchain)
include(Targets)

add_subdirectory(base)
add_subdirectory(kernels)
add_subdirectory(tests/unit/base)
add_subdirectory(tests/unit/kernels)
add_subdirectory(tests/property/matmul)
add_subdirectory(tests/property/ops)
add_subdirectory(tests/aarch64)
