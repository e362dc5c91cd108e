// The cluster's state machine on a clock of the test: gathering, loading,
// epochs, losses and returns. Failures are provoked by ending sessions, staying
// silent, refusing loads and breaking links at every phase.
#include "coordinator/membership/membership_core.h"

#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Phase = MembershipCore::Phase;

control::Register Worker(const std::string& name, int64_t pid = 1,
                         int64_t memory_bytes = 0) {
  control::Register info;
  info.name = name;
  info.pid = pid;
  info.memory_bytes = memory_bytes;
  info.data_address = {"127.0.0.1", 7000};
  return info;
}

// One stage a worker, in the order given; remembers the names it saw.
class TestPlanner {
 public:
  absl::StatusOr<ClusterPlan> operator()(
      const std::vector<control::Register>& workers) {
    names.clear();
    for (const auto& worker : workers) {
      names.push_back(worker.name);
    }
    if (static_cast<int>(workers.size()) < needed) {
      return AnswerIsNo("model", "does not fit");
    }
    ClusterPlan plan;
    for (int i = 0; i < stages; ++i) {
      StageSeat seat;
      seat.worker = names[static_cast<size_t>(i)];
      seat.memory_bytes = 1000;
      seat.stage.first_layer = i;
      seat.stage.last_layer = i;
      plan.seats.push_back(seat);
    }
    return plan;
  }

  int needed = 0;
  int stages = 2;
  std::vector<std::string> names;
};

class MembershipTest : public ::testing::Test {
 protected:
  explicit MembershipTest(int num_workers = 2)
      : core_({.num_workers = num_workers,
               .model_path = "m.gguf",
               .model_digest = "d"},
              [this](const auto& workers) { return planner_(workers); }) {}

  void Join(SessionId session, const control::Register& info) {
    core_.OnMessage(now_, session, info);
  }
  // Loads that were asked for, answered.
  int AnswerLoads() {
    int count = 0;
    for (const MembershipAction& action : Take()) {
      if (const auto* send = std::get_if<SendTo>(&action)) {
        if (const auto* load = std::get_if<control::Load>(&send->message)) {
          core_.OnMessage(now_, send->session,
                          control::Loaded{load->load_key, 1, 2, 3});
          ++count;
        }
      }
    }
    return count;
  }
  void Activate(std::vector<SessionId> sessions) {
    for (const SessionId session : sessions) {
      core_.OnMessage(now_, session, control::Active{core_.epoch()});
    }
    core_.OnLinksUp(now_, core_.epoch());
  }
  // Two workers, ready in epoch 1.
  void MakeReady() {
    Join(1, Worker("a"));
    Join(2, Worker("b"));
    ASSERT_EQ(AnswerLoads(), 2);
    Activate({1, 2});
    ASSERT_EQ(core_.phase(), Phase::kReady);
    Take();
  }
  std::vector<MembershipAction> Take() { return core_.TakeActions(); }
  template <typename Action>
  std::vector<Action> TakeOnly() {
    std::vector<Action> out;
    for (const MembershipAction& action : Take()) {
      if (const auto* found = std::get_if<Action>(&action)) {
        out.push_back(*found);
      }
    }
    return out;
  }
  void Wait(absl::Duration step, std::vector<SessionId> alive) {
    now_ += step;
    for (const SessionId session : alive) {
      core_.OnMessage(now_, session, control::Heartbeat{});
    }
    core_.OnTick(now_);
  }

  absl::Duration now_ = absl::Seconds(1000);
  TestPlanner planner_;
  MembershipCore core_;
};

TEST_F(MembershipTest, WaitsForAllThenPlansInNaturalOrder) {
  Join(1, Worker("node-10"));
  EXPECT_EQ(core_.phase(), Phase::kGathering);
  EXPECT_EQ(core_.WaitsFor(), "workers: 1 of 2 are there");
  Join(2, Worker("node-9"));
  EXPECT_EQ(core_.phase(), Phase::kAssembling);
  EXPECT_THAT(planner_.names, ElementsAre("node-9", "node-10"));
  EXPECT_EQ(core_.Holder(0)->session, 2);
  EXPECT_THAT(core_.WaitsFor(), HasSubstr("node-9 to load layers 0 to 0"));
}

TEST_F(MembershipTest, LoadsInParallelActivatesAndBecomesReady) {
  Join(1, Worker("a"));
  Join(2, Worker("b"));
  EXPECT_EQ(AnswerLoads(), 2);
  const auto up = TakeOnly<BringUp>();
  ASSERT_EQ(up.size(), 1);
  EXPECT_EQ(up[0].epoch, 1);
  core_.OnMessage(now_, 1, control::Active{1});
  core_.OnLinksUp(now_, 1);
  EXPECT_EQ(core_.phase(), Phase::kActivating);
  EXPECT_THAT(core_.WaitsFor(), HasSubstr("worker b to be linked"));
  core_.OnMessage(now_, 2, control::Active{1});
  EXPECT_EQ(core_.phase(), Phase::kReady);
  EXPECT_EQ(core_.WaitsFor(), "");
  EXPECT_EQ(TakeOnly<BecomeReady>().size(), 1);
}

TEST_F(MembershipTest, LostWorkerTakesDownAndItsReturnBringsUpANewEpoch) {
  MakeReady();
  core_.OnSessionEnd(now_, 2, absl::UnavailableError("stream broke"));
  const auto actions = Take();
  ASSERT_EQ(actions.size(), 3);
  EXPECT_EQ(std::get<ReportLost>(actions[0]).worker, "b");
  const auto& down = std::get<TakeDown>(actions[1]);
  EXPECT_EQ(down.epoch, 1);
  EXPECT_TRUE(down.was_ready);
  EXPECT_EQ(down.worker, "b");
  EXPECT_EQ(std::get<SendTo>(actions[2]).session, 1);
  EXPECT_THAT(core_.WaitsFor(), HasSubstr("worker b (layers 1 to 1)"));
  Join(3, Worker("b", 2));
  EXPECT_EQ(AnswerLoads(), 1);  // the survivor keeps its weights
  Wait(absl::Seconds(1), {1, 3});
  EXPECT_EQ(core_.epoch(), 2);
  Activate({1, 3});
  EXPECT_EQ(core_.phase(), Phase::kReady);
}

TEST_F(MembershipTest, SilentWorkerIsLostAfterItsLease) {
  MakeReady();
  Wait(absl::Seconds(2), {1});
  EXPECT_EQ(core_.phase(), Phase::kReady);
  EXPECT_EQ(core_.NextTick(), now_ + absl::Seconds(1));
  Wait(absl::Seconds(1), {1});
  const auto dropped = TakeOnly<DropSession>();
  ASSERT_EQ(dropped.size(), 1);
  EXPECT_EQ(dropped[0].session, 2);
  EXPECT_THAT(std::string(dropped[0].reason.message()), HasSubstr("heartbeat"));
  EXPECT_EQ(core_.phase(), Phase::kAssembling);
}

TEST_F(MembershipTest, SilenceDoesNotCountWhileTheDriverStoodStill) {
  MakeReady();
  now_ += absl::Seconds(30);
  core_.OnStalled(now_);
  core_.OnTick(now_);
  EXPECT_EQ(core_.phase(), Phase::kReady);
  now_ += absl::Seconds(3);
  core_.OnTick(now_);
  EXPECT_EQ(core_.phase(), Phase::kAssembling);
}

TEST_F(MembershipTest, ASpareTakesAVacantSeatWhenItHasTheMemory) {
  MakeReady();
  Join(3, Worker("small", 3, 999));
  Join(4, Worker("large", 4, 1000));
  Take();
  core_.OnSessionEnd(now_, 1, absl::UnavailableError("x"));
  ASSERT_NE(core_.Holder(0), nullptr);
  EXPECT_EQ(core_.Holder(0)->info.name, "large");
  EXPECT_EQ(AnswerLoads(), 1);
}

TEST_F(MembershipTest, SameNameIsRefusedUnlessItIsTheSameProcess) {
  MakeReady();
  Join(3, Worker("a", 99));
  auto dropped = TakeOnly<DropSession>();
  ASSERT_EQ(dropped.size(), 1);
  EXPECT_EQ(dropped[0].session, 3);
  EXPECT_TRUE(absl::IsAlreadyExists(dropped[0].reason));
  EXPECT_EQ(core_.phase(), Phase::kReady);
  Join(4, Worker("a", 1));
  dropped = TakeOnly<DropSession>();
  ASSERT_EQ(dropped.size(), 1);
  EXPECT_EQ(dropped[0].session, 1);
  EXPECT_EQ(core_.phase(), Phase::kAssembling);
  EXPECT_EQ(core_.Holder(0)->session, 4);
}

TEST_F(MembershipTest, OtherProtocolVersionIsRefused) {
  control::Register old = Worker("a");
  old.wire_version = 99;
  Join(1, old);
  const auto dropped = TakeOnly<DropSession>();
  ASSERT_EQ(dropped.size(), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(dropped[0].reason));
  EXPECT_THAT(core_.members(), IsEmpty());
}

TEST_F(MembershipTest, FailedLoadIsReportedAndTriedAgainLater) {
  Join(1, Worker("a"));
  Join(2, Worker("b"));
  Take();
  core_.OnMessage(now_, 1,
                  control::Failed{control::Operation::kLoad, core_.load_key(0),
                                  0, InputError("m.gguf", "is damaged")});
  const auto failed = TakeOnly<ReportStageFailed>();
  ASSERT_EQ(failed.size(), 1);
  EXPECT_EQ(failed[0].worker, "a");
  EXPECT_EQ(KindOf(failed[0].reason), ErrorKind::kInput);
  Wait(absl::Seconds(1), {1, 2});
  EXPECT_EQ(AnswerLoads(), 0);
  EXPECT_EQ(core_.NextTick(), now_ + absl::Seconds(1));
  Wait(absl::Seconds(1), {1, 2});
  EXPECT_EQ(AnswerLoads(), 1);
}

TEST_F(MembershipTest, ActivationThatTakesTooLongIsTriedAnewWithBackoff) {
  Join(1, Worker("a"));
  Join(2, Worker("b"));
  AnswerLoads();
  for (uint64_t epoch = 1; epoch < 5; ++epoch) {
    EXPECT_EQ(core_.epoch(), epoch);
    EXPECT_EQ(core_.phase(), Phase::kActivating);
    for (int second = 0; second < 10; ++second) {
      Wait(absl::Seconds(1), {1, 2});
    }
    const auto down = TakeOnly<TakeDown>();
    ASSERT_EQ(down.size(), 1);
    EXPECT_FALSE(down[0].was_ready);
    EXPECT_THAT(std::string(down[0].reason.message()),
                HasSubstr("worker a to be linked"));
    EXPECT_EQ(core_.phase(), Phase::kAssembling);
    const absl::Duration backoff = core_.NextTick() - now_;
    EXPECT_EQ(backoff, absl::Milliseconds(200) * (1 << (epoch - 1)));
    Wait(backoff, {1, 2});
  }
}

TEST_F(MembershipTest, StaleEventsOfOldEpochsChangeNothing) {
  MakeReady();
  core_.OnMessage(now_, 1, control::StageEnded{7, absl::AbortedError("old")});
  core_.OnMessage(now_, 1,
                  control::Failed{control::Operation::kActivate, "", 7,
                                  absl::AbortedError("")});
  core_.OnLinksFailed(now_, 7, absl::AbortedError("old"));
  core_.OnLinksUp(now_, 7);
  core_.OnMessage(now_, 77, control::Active{1});
  EXPECT_EQ(core_.phase(), Phase::kReady);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(MembershipTest, EndedStageOrLinkStartsANewEpochWithoutLoading) {
  MakeReady();
  core_.OnMessage(now_, 2,
                  control::StageEnded{1, absl::UnavailableError("link")});
  Wait(absl::Milliseconds(400), {1, 2});
  EXPECT_EQ(TakeOnly<TakeDown>().size(), 1);
  Wait(absl::Milliseconds(200), {1, 2});
  EXPECT_EQ(core_.epoch(), 2);
  Activate({1, 2});
  Take();
  core_.OnLinksFailed(now_, 2, absl::UnavailableError("dial"));
  Wait(absl::Seconds(1), {1, 2});
  EXPECT_EQ(core_.epoch(), 3);
  EXPECT_EQ(AnswerLoads(), 0);
}

// The neighbour of a worker that died reports its broken link first; the dead
// one is blamed all the same.
TEST_F(MembershipTest, LostWorkerIsBlamedAndNotItsNeighbour) {
  MakeReady();
  core_.OnMessage(now_, 2,
                  control::StageEnded{1, absl::UnavailableError("peer ended")});
  core_.OnSessionEnd(now_, 1, absl::UnavailableError("stream broke"));
  const auto downs = TakeOnly<TakeDown>();
  ASSERT_EQ(downs.size(), 1);
  EXPECT_EQ(downs[0].worker, "a");
}

// A neighbour's word about an epoch that was taken down already must not end
// the next one, which is healthy.
TEST_F(MembershipTest, LateReportOfAnEndedEpochLeavesTheNextAlone) {
  MakeReady();
  core_.OnLinksFailed(now_, 1, absl::UnavailableError("link"));
  EXPECT_EQ(TakeOnly<TakeDown>().size(), 1);
  Wait(absl::Milliseconds(150), {1, 2});
  core_.OnMessage(now_, 2,
                  control::StageEnded{1, absl::UnavailableError("peer ended")});
  Wait(absl::Milliseconds(50), {1, 2});
  EXPECT_EQ(core_.epoch(), 2);
  Activate({1, 2});
  EXPECT_EQ(core_.phase(), Phase::kReady);
  Take();
  Wait(absl::Seconds(1), {1, 2});
  EXPECT_EQ(core_.phase(), Phase::kReady);
  EXPECT_THAT(TakeOnly<TakeDown>(), IsEmpty());
}

TEST_F(MembershipTest, PlanThatFailsIsReportedOnceAndTriedWithOtherWorkers) {
  planner_.needed = 3;
  Join(1, Worker("a"));
  Join(2, Worker("b"));
  EXPECT_EQ(TakeOnly<ReportPlanFailed>().size(), 1);
  Wait(absl::Seconds(1), {1, 2});
  EXPECT_EQ(TakeOnly<ReportPlanFailed>().size(), 0);
  Join(3, Worker("c"));
  EXPECT_EQ(core_.phase(), Phase::kAssembling);
}

// Any order of events: never ready without every seat active and loaded, at
// most one epoch at a time, and once the faults stop the cluster gets ready.
TEST_F(MembershipTest, RandomFaultsEndReady) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    MembershipCore core(
        {.num_workers = 2, .model_path = "m", .model_digest = "d"},
        [this](const auto& w) { return planner_(w); });
    std::map<SessionId, std::string> alive;
    SessionId next = 1;
    uint64_t up_epoch = 0;
    absl::Duration now;
    for (int step = 0; step < 400; ++step) {
      const bool faults = step < 300;
      now += absl::Milliseconds(faults ? 250 : 1000);
      const uint32_t dice = random() % 20;
      if (faults && dice == 0 && !alive.empty()) {
        const SessionId dead = alive.begin()->first;
        alive.erase(dead);
        core.OnSessionEnd(now, dead, absl::UnavailableError("died"));
      } else if (faults && dice == 1) {
        core.OnLinksFailed(now, core.epoch(), absl::UnavailableError("cut"));
      } else if (alive.size() < 2 && (dice < 10 || !faults)) {
        const std::string name =
            !alive.empty() && alive.begin()->second == "a" ? "b" : "a";
        alive[next] = name;
        core.OnMessage(now, next, Worker(name, static_cast<int64_t>(next)));
        ++next;
      }
      for (const auto& [session, name] : alive) {
        core.OnMessage(now, session, control::Heartbeat{});
      }
      core.OnTick(now);
      for (const MembershipAction& action : core.TakeActions()) {
        if (const auto* send = std::get_if<SendTo>(&action)) {
          const auto* load = std::get_if<control::Load>(&send->message);
          if (load != nullptr && alive.contains(send->session) &&
              (!faults || random() % 4 != 0)) {
            core.OnMessage(now, send->session,
                           control::Loaded{load->load_key, 1, 1, 1});
          } else if (load != nullptr && alive.contains(send->session)) {
            core.OnMessage(
                now, send->session,
                control::Failed{control::Operation::kLoad, load->load_key, 0,
                                absl::InternalError("disk")});
          }
        } else if (const auto* up = std::get_if<BringUp>(&action)) {
          ASSERT_GT(up->epoch, up_epoch);
          up_epoch = up->epoch;
        }
      }
      if (core.phase() == Phase::kReady) {
        for (size_t i = 0; i < 2; ++i) {
          ASSERT_NE(core.Holder(i), nullptr);
          ASSERT_TRUE(core.Holder(i)->active);
          ASSERT_EQ(core.Holder(i)->load,
                    MembershipCore::Member::Load::kLoaded);
        }
      }
      if (core.phase() == Phase::kActivating && (!faults || dice != 5)) {
        for (const auto& [session, name] : alive) {
          core.OnMessage(now, session, control::Active{core.epoch()});
        }
        core.OnLinksUp(now, core.epoch());
      }
    }
    EXPECT_EQ(core.phase(), Phase::kReady) << core.WaitsFor();
  }
}

}  // namespace
}  // namespace millrace::coordinator
