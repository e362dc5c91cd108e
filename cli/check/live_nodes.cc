#include "cli/check/live_nodes.h"

#include <algorithm>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "stage-worker/server/node_client.h"

namespace millrace::cli {
namespace {

constexpr size_t kNodesMax = 10'000;
// Calls under way; each waits on a thread.
constexpr size_t kAtOnce = 64;
constexpr absl::Duration kDescribeTimeout = absl::Seconds(3);
// Reads headers and a few bytes of a thousand tensors from a cold disk.
constexpr absl::Duration kFindTimeout = absl::Seconds(30);
// A quick measurement: ten seconds and a round of a slow machine.
constexpr absl::Duration kMeasureTimeout = absl::Seconds(60);
// Twice two seconds of measuring, and to bring the link up.
constexpr absl::Duration kLinkTimeout = absl::Seconds(9);

// Runs call(i) for i in [0, count), several at once.
void Together(size_t count, const std::function<void(size_t)>& call) {
  for (size_t begin = 0; begin < count; begin += kAtOnce) {
    std::vector<std::thread> threads;
    for (size_t i = begin; i < std::min(count, begin + kAtOnce); ++i) {
      threads.emplace_back([&call, i]() noexcept { call(i); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
}

NodeAnswer Describe(const transport::Endpoint& node,
                    const std::atomic<bool>& cancelled) {
  const SystemClock clock;
  NodeAnswer answer;
  answer.address = transport::FormatEndpoint(node);
  const auto client = worker::NodeClient::Open(node, cancelled);
  answer.description = client->Describe(kDescribeTimeout);
  if (!answer.description.ok()) {
    return answer;
  }
  // Once more, now that there is a connection: nothing but the call counts.
  const absl::Time before = clock.Now();
  const absl::Duration start = clock.Monotonic();
  answer.description = client->Describe(kDescribeTimeout);
  const absl::Duration took = clock.Monotonic() - start;
  if (answer.description.ok()) {
    answer.clock_offset = answer.description->time - (before + took / 2);
    answer.clock_doubt = took / 2;
  }
  return answer;
}

}  // namespace

absl::StatusOr<std::vector<transport::Endpoint>> ParseNodes(
    absl::string_view option, const std::string& text, bool insecure) {
  std::vector<transport::Endpoint> nodes;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    absl::StatusOr<transport::Endpoint> node = transport::ParseEndpoint(one);
    if (!node.ok()) {
      return UsageError(option, node.status().message(),
                        "give HOST:PORT,HOST:PORT, what workers have as "
                        "--control");
    }
    MILLRACE_RETURN_IF_ERROR(transport::RequireTrustedLink(*node, insecure));
    nodes.push_back(*std::move(node));
  }
  if (nodes.size() > kNodesMax) {
    return UsageError(option,
                      absl::StrCat("names more than ", kNodesMax, " nodes"));
  }
  return nodes;
}

std::vector<NodeAnswer> DescribeNodes(
    const std::vector<transport::Endpoint>& nodes,
    const std::atomic<bool>& cancelled) {
  std::vector<NodeAnswer> answers(nodes.size());
  Together(nodes.size(),
           [&](size_t i) { answers[i] = Describe(nodes[i], cancelled); });
  return answers;
}

std::vector<absl::StatusOr<control::ModelDescription>> FindModels(
    const std::vector<transport::Endpoint>& nodes, const std::string& model,
    const std::atomic<bool>& cancelled) {
  std::vector<absl::StatusOr<control::ModelDescription>> found(nodes.size());
  Together(nodes.size(), [&](size_t i) {
    found[i] = worker::NodeClient::Open(nodes[i], cancelled)
                   ->FindModel(model, kFindTimeout);
  });
  return found;
}

std::vector<absl::StatusOr<control::NodeRates>> MeasureNodesAt(
    const std::vector<transport::Endpoint>& nodes,
    const std::atomic<bool>& cancelled) {
  std::vector<absl::StatusOr<control::NodeRates>> rates(nodes.size());
  Together(nodes.size(), [&](size_t i) {
    rates[i] = worker::NodeClient::Open(nodes[i], cancelled)
                   ->MeasureNode(kMeasureTimeout);
  });
  return rates;
}

std::vector<absl::StatusOr<transport::LinkRounds>> MeasureLinks(
    const std::vector<NodePair>& links, const std::atomic<bool>& cancelled) {
  std::vector<absl::StatusOr<transport::LinkRounds>> rounds(links.size());
  std::vector<size_t> left;  // links that wait
  for (size_t i = 0; i < links.size(); ++i) {
    left.push_back(i);
  }
  while (!left.empty()) {
    std::set<std::string> busy;
    std::vector<size_t> now;
    std::vector<size_t> later;
    for (const size_t i : left) {
      const std::string from = transport::FormatEndpoint(links[i].from);
      const std::string to = transport::FormatEndpoint(links[i].to);
      const bool free = !busy.contains(from) && !busy.contains(to);
      (free ? now : later).push_back(i);
      if (free) {
        busy.insert({from, to});
      }
    }
    Together(now.size(), [&](size_t i) {
      const NodePair& link = links[now[i]];
      rounds[now[i]] = worker::NodeClient::Open(link.from, cancelled)
                           ->MeasureLink(link.to, kLinkTimeout);
    });
    left = std::move(later);
  }
  return rounds;
}

}  // namespace millrace::cli
