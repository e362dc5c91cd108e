# One function per kind of target. Components are STATIC libraries used through
# millrace::NAME; sources are listed by hand.

function(millrace_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(millrace_${NAME} STATIC ${ARG_SOURCES})
  add_library(millrace::${NAME} ALIAS millrace_${NAME})
  target_include_directories(millrace_${NAME} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(millrace_${NAME} PUBLIC ${ARG_DEPS}
                                         PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# A gtest executable registered with ctest as one test, labelled with its kind
# (unit, property, golden, ...).
function(millrace_test NAME)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS;ARGS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_include_directories(${NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${NAME} PRIVATE
    MILLRACE_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gmock
                                        GTest::gtest_main)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # Cross-built (cmake/aarch64.cmake): once on each processor, as its label.
  if(MILLRACE_EMULATED_CPUS)
    foreach(CPU ${MILLRACE_EMULATED_CPUS})
      add_test(NAME ${NAME}.${CPU} COMMAND ${NAME} ${ARG_ARGS})
      set_tests_properties(${NAME}.${CPU} PROPERTIES LABELS "${CPU}"
        TIMEOUT 900 ENVIRONMENT QEMU_CPU=${CPU})
    endforeach()
    return()
  endif()
  add_test(NAME ${NAME} COMMAND ${NAME} ${ARG_ARGS})
  set_tests_properties(${NAME} PROPERTIES LABELS "${ARG_LABEL}"
                                          TIMEOUT ${ARG_TIMEOUT})
endfunction()

# A libFuzzer target; runs a short while in CI over its kept corpus.
function(millrace_fuzzer NAME)
  if(NOT MILLRACE_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_include_directories(${NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS})
  target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
  set_property(GLOBAL APPEND PROPERTY MILLRACE_FUZZER_TARGETS ${NAME})
endfunction()
