# Configures and builds the preset aarch64; run in the source directory.
execute_process(COMMAND ${CMAKE_COMMAND} --preset aarch64
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build --preset aarch64 -j 2
                COMMAND_ERROR_IS_FATAL ANY)
