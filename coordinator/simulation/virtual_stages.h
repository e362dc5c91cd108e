#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "coordinator/simulation/simulated_pipeline.h"

namespace millrace::coordinator {

// The stages and links of a pipeline on a virtual clock: each node computes one
// pass at a time, first come, first served, whatever segments they are for;
// each direction of a link carries one frame at a time. One event for each
// segment that a micro-batch passes, none for a row; where micro-batches cannot
// overtake each other, only one for the whole way.
// `now` is time since the start and must not run backwards. Owned by one
// thread.
class VirtualStages {
 public:
  // `pipeline` has been validated; at most `tickets` frames are under way.
  // `calm`: none of the faults below will be called for.
  VirtualStages(const SimulatedPipeline& pipeline, int64_t tickets, bool calm);

  // A frame of `rows` leaves the coordinator. `ticket`, below the number of
  // tickets and not under way, names it when it returns. `lengths`: positions
  // that each of its sequences has by then, where reads_sequences().
  void Enter(absl::Duration now, int64_t ticket, int64_t rows,
             std::span<const int64_t> lengths = {});
  // Whether a pass takes time for what it reads of its sequences.
  [[nodiscard]] bool reads_sequences() const { return reads_sequences_; }
  // When something happens next; nothing while nothing moves.
  [[nodiscard]] std::optional<absl::Duration> NextAt() const;
  // Plays what happens next. The ticket that is back at the coordinator, if
  // that was it.
  std::optional<int64_t> Step();

  // Nothing is under way any more: an epoch has ended. Stalled nodes stay so.
  void Clear(absl::Duration now);
  // What arrives at the node from now on takes `factor` times as long.
  void SetNodeFactor(int64_t node, double factor);
  // What is sent between the two, from passes that begin from now on, keeps the
  // link busy so much longer, either way.
  void SetLinkFactor(int64_t node_a, int64_t node_b, double factor);
  // The node stops computing and sending, in the middle of what it does, until
  // Resume.
  void Stall(absl::Duration now, int64_t index);
  void Resume(absl::Duration now, int64_t index);

  // Time that the node has computed, up to `now`; where calm, of all rows that
  // have entered.
  [[nodiscard]] absl::Duration Busy(absl::Duration now, int64_t index) const;

 private:
  // Seconds since the start. Not absl::Duration: its conversions from and to
  // double take as long as all the rest of an event.
  using Seconds = double;

  // A frame arrives at a segment; at the coordinator behind the last one.
  struct Event {
    Seconds at = 0;
    uint64_t order = 0;  // of equal times, the first scheduled first
    int32_t ticket = 0;
    int32_t segment = 0;
    // For a heap whose top is the earliest.
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Node {
    double factor = 1;
    Seconds free_at = 0;  // the end of the last pass that is known of
    Seconds busy = 0;     // of all passes that are known of
    bool stalled = false;
    Seconds stalled_at = 0;    // while stalled
    std::vector<Event> later;  // what leaves or arrives once it goes on
  };
  struct Link {
    double factor = 1;
    Seconds free_at = 0;
  };

  void Schedule(Event event);
  // Where a frame that arrives at `at` will be next.
  Seconds Pass(Seconds at, int32_t ticket, int32_t segment);
  [[nodiscard]] Seconds PassTime(int32_t segment, int64_t rows);
  // Of the frame's sequences.
  [[nodiscard]] Seconds ReadTime(int32_t segment, int32_t ticket) const;
  void ListWindows();
  void TakeLengths(int64_t ticket, std::span<const int64_t> lengths);
  [[nodiscard]] Node& NodeOf(int32_t segment);

  const SimulatedPipeline& pipeline_;
  const int32_t num_segments_;
  bool in_order_ = false;  // frames cannot overtake each other
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<int64_t> link_of_hop_;  // -1: both ends are one node
  absl::flat_hash_map<std::pair<int64_t, int64_t>, int64_t> link_between_;
  std::vector<int64_t> rows_;     // of each ticket
  std::vector<Seconds> left_at_;  // of each ticket: the end of its last pass
  // By rows, of a segment with experts, filled as asked for; < 0 before.
  std::vector<std::vector<Seconds>> expert_passes_;
  // What passes read of sequences: windows are the different positions_max.
  bool reads_sequences_ = false;
  std::vector<int64_t> windows_;
  std::vector<std::vector<size_t>> window_of_;  // [segments][their kv]
  std::vector<int64_t> sequences_;              // of each ticket
  std::vector<double> positions_;               // [tickets][windows]
  Seconds coordinator_free_at_ = 0;
  std::vector<Event> events_;  // a heap
  uint64_t order_ = 0;
};

}  // namespace millrace::coordinator
