# Builds for 64-bit Arm with Debian's cross compiler; tests run under user-mode
# emulation, once on each of MILLRACE_EMULATED_CPUS.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
# Nothing of the target's C library has to be found at run time.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

# Without the byte dot instruction, and with it.
set(MILLRACE_EMULATED_CPUS cortex-a53 neoverse-n1)
