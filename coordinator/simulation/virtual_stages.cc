#include "coordinator/simulation/virtual_stages.h"

#include <algorithm>

namespace millrace::coordinator {

VirtualStages::VirtualStages(const SimulatedPipeline& pipeline, int64_t tickets,
                             bool calm)
    : pipeline_(pipeline),
      num_segments_(static_cast<int32_t>(pipeline.segments.size())),
      in_order_(calm),
      nodes_(pipeline.nodes.size()),
      rows_(static_cast<size_t>(tickets)),
      left_at_(static_cast<size_t>(tickets)),
      expert_passes_(pipeline.segments.size()) {
  for (size_t hop = 0; hop < pipeline.hops.size(); ++hop) {
    const int64_t from = pipeline.segments[hop].node;
    const int64_t to = pipeline.segments[hop + 1].node;
    if (from == to) {
      link_of_hop_.push_back(-1);
      continue;
    }
    const auto [found, fresh] = link_between_.try_emplace(
        std::pair(from, to), static_cast<int64_t>(links_.size()));
    if (fresh) {
      links_.emplace_back();
    }
    link_of_hop_.push_back(found->second);
  }
  std::vector<bool> visited(nodes_.size());
  for (const SimulatedSegment& segment : pipeline.segments) {
    const auto node = static_cast<size_t>(segment.node);
    in_order_ = in_order_ && !visited[node];
    visited[node] = true;
  }
  ListWindows();
  sequences_.resize(static_cast<size_t>(tickets));
  positions_.resize(static_cast<size_t>(tickets) * windows_.size());
  const int64_t rows_max = pipeline.CoreConfigOf().WithDefaults().rows_max;
  for (size_t i = 0; i < pipeline.segments.size(); ++i) {
    if (!pipeline.segments[i].experts.empty()) {
      expert_passes_[i].assign(static_cast<size_t>(rows_max) + 1, -1);
    }
  }
}

void VirtualStages::ListWindows() {
  for (const SimulatedSegment& segment : pipeline_.segments) {
    std::vector<size_t>& own = window_of_.emplace_back();
    reads_sequences_ =
        reads_sequences_ || segment.sequence_s > 0 || !segment.kv.empty();
    for (const KvReads& kv : segment.kv) {
      const auto found =
          std::find(windows_.begin(), windows_.end(), kv.positions_max);
      own.push_back(static_cast<size_t>(found - windows_.begin()));
      if (found == windows_.end()) {
        windows_.push_back(kv.positions_max);
      }
    }
  }
}

void VirtualStages::TakeLengths(int64_t ticket,
                                std::span<const int64_t> lengths) {
  const auto index = static_cast<size_t>(ticket);
  sequences_[index] = static_cast<int64_t>(lengths.size());
  for (size_t window = 0; window < windows_.size(); ++window) {
    double sum = 0;
    for (const int64_t length : lengths) {
      sum += static_cast<double>(
          windows_[window] == 0 ? length : std::min(windows_[window], length));
    }
    positions_[index * windows_.size() + window] = sum;
  }
}

void VirtualStages::Enter(absl::Duration now, int64_t ticket, int64_t rows,
                          std::span<const int64_t> lengths) {
  rows_[static_cast<size_t>(ticket)] = rows;
  if (reads_sequences_) {
    TakeLengths(ticket, lengths);
  }
  coordinator_free_at_ =
      std::max(absl::ToDoubleSeconds(now), coordinator_free_at_) +
      pipeline_.coordinator_s;
  Event event{.at = coordinator_free_at_,
              .ticket = static_cast<int32_t>(ticket),
              .segment = 0};
  if (in_order_) {
    // Whoever enters later is later everywhere: all of the way is known.
    for (; event.segment < num_segments_; ++event.segment) {
      event.at = Pass(event.at, event.ticket, event.segment);
    }
  }
  Schedule(event);
}

std::optional<absl::Duration> VirtualStages::NextAt() const {
  if (events_.empty()) {
    return std::nullopt;
  }
  return absl::Seconds(events_.front().at);
}

std::optional<int64_t> VirtualStages::Step() {
  std::pop_heap(events_.begin(), events_.end());
  Event event = events_.back();
  events_.pop_back();
  if (event.segment == num_segments_) {
    return event.ticket;
  }
  if (Node& node = NodeOf(event.segment); node.stalled) {
    node.later.push_back(event);
    return std::nullopt;
  }
  event.at = Pass(event.at, event.ticket, event.segment);
  ++event.segment;
  Schedule(event);
  return std::nullopt;
}

void VirtualStages::Clear(absl::Duration now) {
  events_.clear();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    node.busy = absl::ToDoubleSeconds(Busy(now, static_cast<int64_t>(i)));
    node.free_at = absl::ToDoubleSeconds(now);
    node.later.clear();
  }
  for (Link& link : links_) {
    link.free_at = absl::ToDoubleSeconds(now);
  }
  coordinator_free_at_ = absl::ToDoubleSeconds(now);
}

void VirtualStages::SetNodeFactor(int64_t node, double factor) {
  nodes_[static_cast<size_t>(node)].factor = factor;
}

void VirtualStages::SetLinkFactor(int64_t node_a, int64_t node_b,
                                  double factor) {
  for (const auto& ends :
       {std::pair(node_a, node_b), std::pair(node_b, node_a)}) {
    const auto found = link_between_.find(ends);
    if (found != link_between_.end()) {
      links_[static_cast<size_t>(found->second)].factor = factor;
    }
  }
}

void VirtualStages::Stall(absl::Duration now, int64_t index) {
  Node& node = nodes_[static_cast<size_t>(index)];
  if (node.stalled) {
    return;
  }
  node.stalled = true;
  node.stalled_at = absl::ToDoubleSeconds(now);
  // What it has not yet done is on its way to the next segment already.
  const auto held =
      std::partition(events_.begin(), events_.end(), [&](const Event& event) {
        return event.segment == 0 || &NodeOf(event.segment - 1) != &node ||
               left_at_[static_cast<size_t>(event.ticket)] <= node.stalled_at;
      });
  node.later.assign(held, events_.end());
  std::sort(node.later.begin(), node.later.end(),
            [](const Event& a, const Event& b) { return a.order < b.order; });
  events_.erase(held, events_.end());
  std::make_heap(events_.begin(), events_.end());
}

void VirtualStages::Resume(absl::Duration now, int64_t index) {
  Node& node = nodes_[static_cast<size_t>(index)];
  if (!node.stalled) {
    return;
  }
  node.stalled = false;
  const Seconds at = absl::ToDoubleSeconds(now);
  const Seconds pause = at - node.stalled_at;
  node.free_at += node.free_at > node.stalled_at ? pause : 0;
  std::vector<Event> later;
  std::swap(later, node.later);
  for (Event& event : later) {
    if (event.segment < num_segments_ && &NodeOf(event.segment) == &node) {
      event.at = at;  // has arrived meanwhile
    } else {
      event.at += pause;
      left_at_[static_cast<size_t>(event.ticket)] += pause;
    }
    Schedule(event);
  }
  for (const auto& [ends, link] : link_between_) {
    Seconds& free_at = links_[static_cast<size_t>(link)].free_at;
    free_at += ends.first == index && free_at > node.stalled_at ? pause : 0;
  }
}

absl::Duration VirtualStages::Busy(absl::Duration now, int64_t index) const {
  const Node& node = nodes_[static_cast<size_t>(index)];
  if (in_order_) {
    return absl::Seconds(node.busy);
  }
  // Passes that are known of follow each other without a gap.
  const Seconds until =
      node.stalled ? node.stalled_at : absl::ToDoubleSeconds(now);
  return absl::Seconds(node.busy - std::max(0.0, node.free_at - until));
}

void VirtualStages::Schedule(Event event) {
  event.order = order_++;
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end());
}

VirtualStages::Seconds VirtualStages::Pass(Seconds at, int32_t ticket,
                                           int32_t segment) {
  Node& node = NodeOf(segment);
  const int64_t rows = rows_[static_cast<size_t>(ticket)];
  const Seconds time =
      (PassTime(segment, rows) + ReadTime(segment, ticket)) * node.factor;
  node.busy += time;
  node.free_at = std::max(at, node.free_at) + time;
  left_at_[static_cast<size_t>(ticket)] = node.free_at;
  const auto hop_index = static_cast<size_t>(segment);
  if (hop_index == pipeline_.hops.size()) {
    return node.free_at + pipeline_.return_s;
  }
  if (link_of_hop_[hop_index] < 0) {
    return node.free_at;
  }
  const SimulatedHop& hop = pipeline_.hops[hop_index];
  Link& link = links_[static_cast<size_t>(link_of_hop_[hop_index])];
  link.free_at = std::max(node.free_at, link.free_at) +
                 static_cast<double>(rows) * hop.row_s * link.factor;
  return link.free_at + hop.latency_s;
}

VirtualStages::Seconds VirtualStages::PassTime(int32_t segment, int64_t rows) {
  if (rows == 0) {
    return 0;  // only closes sequences: no weights are read
  }
  const auto index = static_cast<size_t>(segment);
  const SimulatedSegment& costs = pipeline_.segments[index];
  if (costs.experts.empty()) {
    return costs.pass_s + static_cast<double>(rows) * costs.row_s;
  }
  Seconds& time = expert_passes_[index][static_cast<size_t>(rows)];
  if (time < 0) {
    time = PassSeconds(costs, rows);
  }
  return time;
}

VirtualStages::Seconds VirtualStages::ReadTime(int32_t segment,
                                               int32_t ticket) const {
  if (!reads_sequences_) {
    return 0;
  }
  const auto index = static_cast<size_t>(segment);
  const auto frame = static_cast<size_t>(ticket);
  const SimulatedSegment& costs = pipeline_.segments[index];
  Seconds time = static_cast<double>(sequences_[frame]) * costs.sequence_s;
  for (size_t i = 0; i < costs.kv.size(); ++i) {
    time += positions_[frame * windows_.size() + window_of_[index][i]] *
            costs.kv[i].position_s;
  }
  return time;
}

VirtualStages::Node& VirtualStages::NodeOf(int32_t segment) {
  const int64_t node = pipeline_.segments[static_cast<size_t>(segment)].node;
  return nodes_[static_cast<size_t>(node)];
}

}  // namespace millrace::coordinator
