#include "cli/bench/system_file.h"

#include <fstream>
#include <sstream>

namespace millrace::cli {

std::string ReadSystemFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace millrace::cli
