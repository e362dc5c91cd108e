#include "cli/ready_event.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"

namespace millrace::cli {

void ReportReady(Console& console, const std::string& url,
                 const std::vector<ReadyWorker>& workers) {
  if (!console.json()) {
    console.Announce(absl::StrCat("ready at ", url, "\n"));
    for (const ReadyWorker& worker : workers) {
      console.Announce(absl::StrCat("  ", worker.name, " pid ", worker.pid,
                                    " layers ", worker.first_layer, " to ",
                                    worker.last_layer, "\n"));
    }
    return;
  }
  boost::json::object event;
  event["event"] = "ready";
  event["url"] = url;
  event["pid"] = getpid();
  if (!workers.empty()) {
    boost::json::array list;
    for (const ReadyWorker& worker : workers) {
      list.push_back({{"name", worker.name},
                      {"pid", worker.pid},
                      {"layers", {worker.first_layer, worker.last_layer}}});
    }
    event["workers"] = list;
  }
  console.AnnounceJson(event);
}

}  // namespace millrace::cli
