// A real cluster in one process: control plane over gRPC and links over TCP on
// loopback, stages without a model. Failures are provoked by stopping workers
// and the coordinator, failing loads and strangers on the control port.
#include "coordinator/membership/cluster.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "millrace/control/v1/control.grpc.pb.h"
#include "stage-worker/server/worker_server.h"
#include "tests/unit/coordinator/membership/fake_stage.h"

namespace millrace::coordinator {
namespace {

using ::testing::HasSubstr;
using transport::Endpoint;
using worker::WorkerServer;

constexpr absl::Duration kLong = absl::Seconds(60);

absl::StatusOr<ClusterPlan> PlanOneStageEach(
    const std::vector<control::Register>& workers) {
  ClusterPlan plan;
  for (size_t i = 0; i < workers.size(); ++i) {
    StageSeat seat;
    seat.worker = workers[i].name;
    control::Stage& stage = seat.stage;
    stage.first_layer = stage.last_layer = static_cast<int64_t>(i);
    stage.holds_embedding = i == 0;
    stage.holds_head = i + 1 == workers.size();
    stage.context = 100;
    stage.rows_max = 8;
    stage.prefill_chunk = 8;
    plan.seats.push_back(seat);
  }
  plan.limits = {.slots = 4,
                 .rows_max = 8,
                 .columns = 6,
                 .positions_max = 100,
                 .vocab_size = 50,
                 .ops_max = 3};
  plan.window = 2;
  plan.stage_window = 2;
  return plan;
}

// Collects what the cluster tells; waits for it.
class TestListener final : public ClusterListener {
 public:
  void OnReady(
      uint64_t epoch, std::unique_ptr<transport::FrameSender> new_sender,
      std::unique_ptr<transport::FrameReceiver> new_receiver) override {
    MutexLock lock(mutex_);
    sender = std::move(new_sender);
    receiver = std::move(new_receiver);
    ready_epoch = epoch;
    changed_.NotifyAll();
  }
  void OnDown(uint64_t, const absl::Status& reason) override {
    MutexLock lock(mutex_);
    down.push_back(reason);
    changed_.NotifyAll();
  }
  void OnWorkerJoined(const std::string& worker) override {
    MutexLock lock(mutex_);
    joined.push_back(worker);
    changed_.NotifyAll();
  }
  void OnStageFailed(const std::string& worker,
                     const absl::Status& reason) override {
    MutexLock lock(mutex_);
    failed[worker] = reason;
    changed_.NotifyAll();
  }
  void OnLoadProgress(const std::string&, int64_t done, int64_t) override {
    MutexLock lock(mutex_);
    progress = done;
  }

  template <typename Condition>
  void WaitFor(Condition condition) {
    MutexLock lock(mutex_);
    while (!condition()) {
      changed_.Wait(mutex_);
    }
  }

  std::unique_ptr<transport::FrameSender> sender;
  std::unique_ptr<transport::FrameReceiver> receiver;
  uint64_t ready_epoch = 0;
  std::deque<absl::Status> down;
  std::vector<std::string> joined;
  std::map<std::string, absl::Status> failed;
  int64_t progress = 0;

 private:
  Mutex mutex_;
  CondVar changed_;
};

// A worker process in a thread.
class TestWorker {
 public:
  TestWorker(const std::string& name, const Endpoint& coordinator)
      : server_(WorkerServer::Create({.coordinator = coordinator,
                                      .listen = {"127.0.0.1", 0},
                                      .name = name,
                                      .version = "test",
                                      .isa = "scalar",
                                      .memory_bytes = 0,
                                      .insecure = false,
                                      .factory = &factory,
                                      .on_event = nullptr})
                    .value()),
        thread_([this] { server_->Run(); }) {}
  ~TestWorker() {
    server_->Stop();
    thread_.join();
  }
  // Returns once the coordinator has shut it down.
  void Join() {
    thread_.join();
    thread_ = std::thread([] {});
  }

  FakeStageFactory factory;

 private:
  std::unique_ptr<WorkerServer> server_;
  std::thread thread_;
};

class ClusterTest : public ::testing::Test {
 protected:
  void StartCluster(int num_workers, Endpoint control = {"127.0.0.1", 0}) {
    auto cluster = Cluster::Start({.control = control,
                                   .data = {"127.0.0.1", 0},
                                   .insecure = false,
                                   .checksum = true,
                                   .membership = {.num_workers = num_workers,
                                                  .model_path = "model.gguf",
                                                  .model_digest = "digest"},
                                   .planner = PlanOneStageEach,
                                   .listener = &listener_});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  void AddWorker(const std::string& name) {
    workers_[name] =
        std::make_unique<TestWorker>(name, cluster_->control_endpoint());
  }
  void WaitReady(uint64_t epoch) {
    listener_.WaitFor([&] { return listener_.ready_epoch >= epoch; });
  }
  // A frame through all stages; the token that comes back.
  int32_t GoRound(int32_t token) {
    transport::Frame frame;
    frame.epoch = listener_.ready_epoch;
    frame.microbatch = 77;
    frame.rows = {{1, 5, token, 0, transport::kRowWantsToken}};
    EXPECT_EQ(listener_.sender->Send(frame), absl::OkStatus());
    transport::Frame back;
    EXPECT_EQ(listener_.receiver->Next(kLong, back), absl::OkStatus());
    EXPECT_EQ(back.microbatch, 77);
    EXPECT_EQ(back.results.size(), 1);
    return back.results.empty() ? -1 : back.results[0].token;
  }

  TestListener listener_;
  std::map<std::string, std::unique_ptr<TestWorker>> workers_;
  std::unique_ptr<Cluster> cluster_;  // first to go
};

TEST_F(ClusterTest, ThreeWorkersBecomeReadyAndFramesGoRound) {
  StartCluster(3);
  EXPECT_EQ(cluster_->WaitsFor(), "workers: 0 of 3 are there");
  for (const char* name : {"w1", "w2", "w0"}) {
    AddWorker(name);
  }
  WaitReady(1);
  EXPECT_EQ(GoRound(10), 13);
  EXPECT_EQ(GoRound(40), 43);
  const auto stages = cluster_->Stages();
  ASSERT_EQ(stages.size(), 3);
  EXPECT_EQ(stages[0].name, "w0");
  EXPECT_EQ(stages[2].last_layer, 2);
  EXPECT_EQ(listener_.progress, 50);
}

TEST_F(ClusterTest, LostWorkerIsNamedAndItsSuccessorBringsANewEpoch) {
  StartCluster(3);
  for (const char* name : {"w0", "w1", "w2"}) {
    AddWorker(name);
  }
  WaitReady(1);
  EXPECT_EQ(GoRound(1), 4);
  workers_.erase("w1");
  listener_.WaitFor([&] { return !listener_.down.empty(); });
  const absl::Status explained =
      cluster_->ExplainLoss(absl::UnavailableError("link"));
  EXPECT_THAT(std::string(explained.message()), HasSubstr("w1"));
  while (cluster_->WaitsFor().find("w1") == std::string::npos) {
    std::this_thread::yield();
  }
  AddWorker("w1");
  WaitReady(2);
  EXPECT_EQ(GoRound(1), 4);
  EXPECT_EQ(workers_["w0"]->factory.num_created(), 1);
  EXPECT_EQ(workers_["w2"]->factory.num_created(), 1);
}

TEST_F(ClusterTest, WorkersKeepTheirWeightsWhenTheCoordinatorComesBack) {
  StartCluster(2);
  AddWorker("a");
  AddWorker("b");
  WaitReady(1);
  const Endpoint control = cluster_->control_endpoint();
  cluster_.reset();
  EXPECT_EQ(listener_.down.size(), 1);
  listener_.sender.reset();
  listener_.receiver.reset();
  listener_.ready_epoch = 0;
  StartCluster(2, control);
  WaitReady(1);
  EXPECT_EQ(GoRound(7), 9);
  EXPECT_EQ(workers_["a"]->factory.num_created(), 1);
  EXPECT_EQ(workers_["b"]->factory.num_created(), 1);
}

TEST_F(ClusterTest, BrokenLinkIsMadeAnewWithoutLoading) {
  StartCluster(2);
  AddWorker("a");
  AddWorker("b");
  WaitReady(1);
  listener_.sender->Close(absl::UnavailableError("cut"));
  WaitReady(2);
  EXPECT_EQ(GoRound(7), 9);
  cluster_->LinkLost(2, absl::UnavailableError("seen by the engine"));
  WaitReady(3);
  EXPECT_EQ(GoRound(8), 10);
  EXPECT_EQ(workers_["a"]->factory.num_created(), 1);
}

TEST_F(ClusterTest, FailedLoadIsReportedWithItsKindAndTriedAgain) {
  StartCluster(1);
  FakeStageFactory factory;
  factory.FailNext(InputError("model.gguf", "is damaged", "fetch it again"));
  auto server =
      WorkerServer::Create({.coordinator = cluster_->control_endpoint(),
                            .listen = {"127.0.0.1", 0},
                            .name = "a",
                            .version = "",
                            .isa = "",
                            .memory_bytes = 0,
                            .insecure = false,
                            .factory = &factory,
                            .on_event = nullptr})
          .value();
  std::thread thread([&] { server->Run(); });
  listener_.WaitFor([&] { return listener_.failed.contains("a"); });
  EXPECT_EQ(KindOf(listener_.failed["a"]), ErrorKind::kInput);
  EXPECT_EQ(HintOf(listener_.failed["a"]), "fetch it again");
  WaitReady(1);
  server->Stop();
  thread.join();
}

TEST_F(ClusterTest, ShutdownEndsTheWorkers) {
  StartCluster(2);
  AddWorker("a");
  AddWorker("b");
  WaitReady(1);
  cluster_->Stop(/*shut_down_workers=*/true);
  workers_["a"]->Join();
  workers_["b"]->Join();
  EXPECT_EQ(listener_.down.size(), 1);
}

TEST_F(ClusterTest, StoppingAWorkerThatLoadsDoesNotWait) {
  StartCluster(1);
  FakeStageFactory factory;
  factory.HangNext();
  auto server =
      WorkerServer::Create({.coordinator = cluster_->control_endpoint(),
                            .listen = {"127.0.0.1", 0},
                            .name = "a",
                            .version = "",
                            .isa = "",
                            .memory_bytes = 0,
                            .insecure = false,
                            .factory = &factory,
                            .on_event = nullptr})
          .value();
  std::thread thread([&] { server->Run(); });
  while (factory.num_created() == 0) {
    std::this_thread::yield();
  }
  server->Stop();
  thread.join();
  server.reset();
}

TEST_F(ClusterTest, SecondWorkerOfANameIsRefusedAndTheFirstStays) {
  StartCluster(1);
  AddWorker("a");
  WaitReady(1);
  auto channel = grpc::CreateChannel(
      transport::FormatEndpoint(cluster_->control_endpoint()),
      grpc::InsecureChannelCredentials());
  auto stub = control::v1::Control::NewStub(channel);
  grpc::ClientContext context;
  auto stream = stub->Session(&context);
  control::v1::WorkerMessage message;
  control::v1::Register& info = *message.mutable_register_();
  info.set_name("a");
  info.set_wire_version(control::kWireVersion);
  info.set_data_address("127.0.0.1:1");
  ASSERT_TRUE(stream->Write(message));
  control::v1::CoordinatorMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(status.error_message(), HasSubstr("a: another worker"));
  EXPECT_EQ(GoRound(3), 4);
}

TEST_F(ClusterTest, StrangersOnTheControlPortAreRefusedByName) {
  StartCluster(1);
  auto channel = grpc::CreateChannel(
      transport::FormatEndpoint(cluster_->control_endpoint()),
      grpc::InsecureChannelCredentials());
  auto stub = control::v1::Control::NewStub(channel);
  const auto session =
      [&](const std::function<void(control::v1::Register&)>& change,
          std::optional<control::v1::WorkerMessage> other = std::nullopt) {
        grpc::ClientContext context;
        auto stream = stub->Session(&context);
        control::v1::WorkerMessage message;
        control::v1::Register& info = *message.mutable_register_();
        info.set_name("a");
        info.set_wire_version(control::kWireVersion);
        info.set_data_address("127.0.0.1:1");
        change(info);
        stream->Write(other.value_or(message));
        control::v1::CoordinatorMessage answer;
        EXPECT_FALSE(stream->Read(&answer));
        return stream->Finish();
      };
  // Also one whose other fields this version cannot read.
  for (const char* address : {"127.0.0.1:1", "", "rdma://[mlx5_0]"}) {
    const grpc::Status old = session([&](control::v1::Register& info) {
      info.set_wire_version(9);
      info.set_data_address(address);
    });
    EXPECT_EQ(old.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(old.error_message(), HasSubstr("a: speaks protocol version 9"));
  }
  const grpc::Status off = session([](control::v1::Register& info) {
    info.set_data_address("192.0.2.1:1");
  });
  EXPECT_EQ(off.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(off.error_message(), HasSubstr("off loopback"));
  const grpc::Status name = session([](control::v1::Register& info) {
    info.set_data_address("some.host:1");
  });
  EXPECT_EQ(name.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status bad =
      session([](control::v1::Register& info) { info.set_name("a/b"); });
  EXPECT_THAT(bad.error_message(), HasSubstr("name"));
  // A heartbeat keeps no place for who is not registered.
  control::v1::WorkerMessage heartbeat;
  heartbeat.mutable_heartbeat();
  const grpc::Status nobody = session([](control::v1::Register&) {}, heartbeat);
  EXPECT_EQ(nobody.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(nobody.error_message(), HasSubstr("without registering"));
}

TEST(ClusterStart, AddressesOffLoopbackNeedInsecure) {
  TestListener listener;
  Cluster::Options options = {.control = {"0.0.0.0", 0},
                              .data = {"127.0.0.1", 0},
                              .membership = {},
                              .planner = PlanOneStageEach,
                              .listener = &listener};
  EXPECT_EQ(KindOf(Cluster::Start(options).status()), ErrorKind::kUsage);
  options.insecure = true;
  const auto cluster = Cluster::Start(options);
  ASSERT_TRUE(cluster.ok());
  options.control = (*cluster)->control_endpoint();
  EXPECT_TRUE(absl::IsUnavailable(Cluster::Start(options).status()));
}

}  // namespace
}  // namespace millrace::coordinator
