#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

// Holds every option of a command to what its type promises, wherever the value
// comes from. Numbers are decimal: CLI11 alone reads 010 as 8 and 0x10 as 16,
// passes white space in front over and takes the largest number for what is
// beyond 64 bits. An empty value is refused by name: it is a variable of a
// script that was not set, not a wish for the default.
void CheckOptionValues(CLI::App& app);

}  // namespace millrace::cli
