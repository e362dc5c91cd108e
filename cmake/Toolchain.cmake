# Language level, warnings, floating point and sanitizers for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# -O2 and no more for ordinary code: build time counts, and the files where
# speed is decided (kernels/*_avx2.cc and the like) ask for -O3 themselves.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

# No fused operation that the source does not write: design/numerics.
add_compile_options(-Wall -Wextra -Werror -ffp-contract=off -fno-fast-math)

# gcc 12 takes the inactive side of std::optional and std::variant for
# uninitialized memory, differently at every optimisation level.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized)
endif()

if(MILLRACE_SANITIZE)
  add_compile_options(-fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MILLRACE_SANITIZE})
  if(MILLRACE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

# Coverage for the fuzzers, which alone link its runtime.
if(MILLRACE_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# Whose kernels are compiled beside the scalar versions: x86_64, aarch64 or none.
# Those of one instruction set are long unrolled loops: instrumented, each file
# takes minutes to compile, and what is not instrumented a sanitizer does not
# see. Their loads are those of the scalar versions, which sanitizer builds run;
# -DMILLRACE_SANITIZE_KERNELS=ON compiles them there, too.
option(MILLRACE_SANITIZE_KERNELS "Compile and instrument kernels of each ISA" OFF)
set(MILLRACE_KERNEL_ISA "${CMAKE_SYSTEM_PROCESSOR}")
if(MILLRACE_KERNEL_ISA STREQUAL "AMD64")
  set(MILLRACE_KERNEL_ISA x86_64)
endif()
if(MILLRACE_SANITIZE AND NOT MILLRACE_SANITIZE_KERNELS)
  set(MILLRACE_KERNEL_ISA none)
endif()

find_program(MILLRACE_CCACHE ccache)
if(MILLRACE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${MILLRACE_CCACHE}")
endif()

find_program(MILLRACE_MOLD mold)
# The cross compiler does not look for it under this name.
if(MILLRACE_MOLD AND NOT CMAKE_CROSSCOMPILING)
  add_link_options(-fuse-ld=mold)
endif()

find_package(Git QUIET)
