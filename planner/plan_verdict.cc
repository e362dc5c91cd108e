#include "planner/plan_verdict.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"

namespace millrace::planner {
namespace {

std::string Size(const absl::int128& bytes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return bytes > kMost ? absl::StrCat("more than ", HumanSize(kMost))
                       : HumanSize(static_cast<int64_t>(bytes));
}

std::string NameOfNode(const CostModel& model, int64_t node) {
  return Printable(model.cluster().nodes[static_cast<size_t>(node)].name);
}

// What the nodes that may be used have for a model, at best.
struct Room {
  int64_t nodes = 0;
  absl::int128 together = 0;
  int64_t largest = 0;
  std::string named;  // how a sentence calls these nodes
};

Room RoomOf(const CostModel& model) {
  const int64_t all = model.num_nodes();
  const int64_t spare = model.cluster().SpareNodes();
  std::vector<int64_t> available;
  for (int64_t node = 0; node < all; ++node) {
    available.push_back(std::max<int64_t>(0, model.Available(node)));
  }
  std::sort(available.rbegin(), available.rend());
  available.resize(static_cast<size_t>(std::max<int64_t>(0, all - spare)));
  Room room;
  room.nodes = static_cast<int64_t>(available.size());
  for (const int64_t bytes : available) {
    room.together += bytes;
  }
  room.largest = available.empty() ? 0 : available.front();
  room.named = spare == 0
                   ? "all nodes together"
                   : absl::StrCat("the largest ", room.nodes, " of ", all,
                                  " nodes (the constraint spare keeps ", spare,
                                  " unused) together");
  return room;
}

// "12 sequences of 4096 tokens"
std::string Sequences(int64_t sequences, int64_t context) {
  return absl::StrCat(Counted(sequences, "sequence"), " of ",
                      Counted(context, "token"));
}

// A layer that stands nowhere whatever stands beside it.
std::string WhyNotOneLayer(const CostModel& model, int64_t sequences) {
  for (int64_t layer = 0; layer < model.num_layers(); ++layer) {
    const LayerRun run = {layer, layer + 1};
    bool allowed = false;
    bool held = false;
    int64_t largest = std::numeric_limits<int64_t>::min();
    for (int64_t node = 0; node < model.num_nodes() && !held; ++node) {
      if (model.Allows(node, run)) {
        allowed = true;
        largest = std::max(largest, model.Available(node));
        held = model.Fits(node, run, sequences);
      }
    }
    if (!allowed) {
      return absl::StrCat("no node carries the labels that layer ", layer,
                          " is bound to");
    }
    if (!held) {
      const absl::int128 need = absl::int128(model.WeightsBytes(run)) +
                                model.ScratchBytes({&run, 1}) +
                                model.SequenceBytes(run) * sequences;
      return absl::StrCat("layer ", layer, " alone needs ", Size(need), " (",
                          HumanSize(model.WeightsBytes(run)),
                          " of weights) for ",
                          Sequences(sequences, model.context()),
                          ", the largest node that may hold it has ",
                          HumanSize(std::max<int64_t>(0, largest)));
    }
  }
  return "";
}

const char* BindingText(BindingKind kind) {
  switch (kind) {
    case BindingKind::kMemory:
      return "memory of ";
    case BindingKind::kTime:
      return "time on ";
    case BindingKind::kLink:
      return "link from ";
  }
  return "";
}

// The first criterion of an objective as people read it.
std::string FirstCriterion(Objective objective, const Measures& measures) {
  switch (objective) {
    case Objective::kThroughput:
    case Objective::kEnergy:
      return measures.tokens_per_s.has_value()
                 ? absl::StrFormat("%.3g tokens/s", *measures.tokens_per_s)
                 : "";
    case Objective::kConcurrency:
      return measures.sequences.has_value()
                 ? Counted(*measures.sequences, "sequence")
                 : "";
    case Objective::kLatency:
      return measures.loop_s.has_value()
                 ? absl::StrCat(HumanDuration(absl::Seconds(*measures.loop_s)),
                                " a token")
                 : "";
    case Objective::kNodes:
      return Counted(measures.nodes_used, "node");
  }
  return "";
}

}  // namespace

std::string VerdictOn(const CostModel& model, const Plan& plan) {
  std::string text = absl::StrCat("fits on ", plan.stages.size(), " of ",
                                  Counted(model.num_nodes(), "node"));
  const ContextConcurrency& first = plan.concurrency.front();
  if (first.sequences.has_value()) {
    absl::StrAppend(&text, ", ", Sequences(*first.sequences, first.context));
  } else {
    absl::StrAppend(&text,
                    ", memory does not bind: nothing is kept per sequence, so "
                    "that their number is unbounded");
  }
  if (plan.tokens_per_s.has_value()) {
    absl::StrAppendFormat(&text, ", about %.3g tokens/s", *plan.tokens_per_s);
  }
  if (plan.binding.node.has_value()) {
    absl::StrAppend(&text, "; bound by ", BindingText(plan.binding.kind),
                    NameOfNode(model, *plan.binding.node));
  }
  return text;
}

std::string GainOverContiguous(const Plan& plan,
                               const std::optional<Measures>& contiguous) {
  const char* why =
      "; nodes hold runs from different places of the model, at the price of "
      "more hops: ";
  if (!contiguous.has_value()) {
    return absl::StrCat(why, "no contiguous placement was found that fits");
  }
  const std::string value = FirstCriterion(plan.objective, *contiguous);
  return value.empty()
             ? ""
             : absl::StrCat(why, "one run of neighboring layers a node takes ",
                            value);
}

std::string WhyNot(const CostModel& model, int64_t sequences) {
  const LayerRun all = {0, model.num_layers()};
  const int64_t weights = model.WeightsBytes(all);
  const absl::int128 kept = model.SequenceBytes(all) * sequences;
  const Room room = RoomOf(model);
  if (room.nodes == 0) {
    return absl::StrCat("does not fit: the constraint spare keeps ",
                        Counted(model.cluster().SpareNodes(), "node"),
                        " unused, the cluster has ", model.num_nodes());
  }
  if (weights > room.together) {
    return absl::StrCat("does not fit: the weights are ", HumanSize(weights),
                        ", ", room.named, " have ", Size(room.together), "; ",
                        Size(weights - room.together), " are missing");
  }
  if (const std::string why = WhyNotOneLayer(model, sequences); !why.empty()) {
    return absl::StrCat("does not fit: ", why);
  }
  const std::string parts =
      absl::StrCat("weights of ", HumanSize(weights), " and ", Size(kept),
                   " for ", Sequences(sequences, model.context()));
  if (weights + kept > room.together) {
    return absl::StrCat("does not fit: ", parts, " are more than the ",
                        Size(room.together), " that ", room.named, " have; ",
                        Size(weights + kept - room.together), " are missing");
  }
  return absl::StrCat("does not fit: ", parts, " find no place, ", room.named,
                      " have ", Size(room.together),
                      ", but whole layers do not share it out");
}

std::vector<std::string> NotesOn(const CostModel& model, const Plan& plan) {
  std::vector<std::string> notes;
  if (model.costs().kv_block_positions > 1) {
    notes.push_back(absl::StrCat("KV is counted in whole blocks of ",
                                 model.costs().kv_block_positions,
                                 " positions, as a stage allocates it"));
  }
  if (plan.fits && !plan.cycle_s.has_value()) {
    notes.push_back(absl::StrCat("times are unknown, the cluster file lacks ",
                                 MissingForTimes(model)));
  }
  if (plan.microbatches.value_or(0) > kMicrobatchesRunMax) {
    notes.push_back(
        absl::StrCat("the pipeline is full with ", *plan.microbatches,
                     " micro-batches, a coordinator runs at most ",
                     kMicrobatchesRunMax, ": less tokens/s than planned"));
  }
  if (plan.fits && plan.bounds.gap.value_or(0) > 0) {
    notes.push_back(
        absl::StrFormat("not proven best: within %.2g %% of a bound that no "
                        "plan can beat",
                        100 * *plan.bounds.gap));
  }
  return notes;
}

}  // namespace millrace::planner
