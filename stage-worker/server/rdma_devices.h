#pragma once

#include <string>
#include <vector>

namespace millrace::worker {

// Names of the devices that libibverbs opens and that have an active port, in
// its order; empty without any. Takes milliseconds.
std::vector<std::string> RdmaDevices();

}  // namespace millrace::worker
