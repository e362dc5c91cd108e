#include "stage-worker/server/rdma_devices.h"

#include <infiniband/verbs.h>

#include <memory>

namespace millrace::worker {
namespace {

bool HasActivePort(ibv_device* device) {
  const std::unique_ptr<ibv_context, decltype(&ibv_close_device)> context(
      ibv_open_device(device), &ibv_close_device);
  ibv_device_attr device_attr = {};
  if (context == nullptr ||
      ibv_query_device(context.get(), &device_attr) != 0) {
    return false;
  }
  for (uint8_t port = 1; port <= device_attr.phys_port_cnt; ++port) {
    ibv_port_attr attr = {};
    if (ibv_query_port(context.get(), port, &attr) == 0 &&
        attr.state == IBV_PORT_ACTIVE) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> RdmaDevices() {
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> devices(
      ibv_get_device_list(&count), &ibv_free_device_list);
  std::vector<std::string> names;
  for (int i = 0; devices != nullptr && i < count; ++i) {
    if (HasActivePort(devices.get()[i])) {
      names.emplace_back(ibv_get_device_name(devices.get()[i]));
    }
  }
  return names;
}

}  // namespace millrace::worker
