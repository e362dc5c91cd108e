// Control messages: plain values come back equal through the wire types, and
// every field out of range is refused by name. Failures are provoked by
// changing one field of a good wire message.
#include "proto/control_codec.h"

#include <functional>
#include <string>

#include "base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace::control {
namespace {

using ::testing::HasSubstr;

Register GoodRegister() {
  return {.name = "node-1.a_b",
          .version = "0.1.0",
          .wire_version = 1,
          .memory_bytes = 44'000'000'000,
          .data_address = {"::1", 7000},
          .isa = "avx2",
          .pid = 77,
          .resident_bytes = 12345,
          .load_key = "abc/0-3e/00/c64",
          .kernels = {{"matmul", "fast", "avx2"}, {"rope", "", "scalar"}}};
}

Load GoodLoad() {
  return {.load_key = "key",
          .model = "/models/a b.gguf",
          .model_digest = "00ff",
          .stage = {.first_layer = 3,
                    .last_layer = 9,
                    .holds_embedding = true,
                    .holds_head = true,
                    .compute = ComputeMode::kExact,
                    .kv_type = KvType::kBf16,
                    .context = 4096,
                    .sequences = 16,
                    .slots = 24,
                    .rows_max = 768,
                    .prefill_chunk = 512,
                    .num_threads = 4}};
}

Activate GoodActivate() {
  Activate activate;
  activate.epoch = 12;
  activate.load_key = "key";
  activate.segment = 2;
  activate.upstream_token[3] = std::byte{9};
  activate.downstream_address = {"10.0.0.7", 7001};
  activate.downstream_token[15] = std::byte{0xFF};
  activate.upstream_limits = {.slots = 4,
                              .rows_max = 8,
                              .columns = 6,
                              .positions_max = 100,
                              .vocab_size = 50,
                              .ops_max = 3};
  activate.downstream_limits = activate.upstream_limits;
  activate.downstream_limits.columns = 0;
  activate.upstream_window = 5;
  activate.downstream_window = 3;
  activate.timeout = absl::Seconds(10);
  return activate;
}

// Through the wire and back; wire forms are compared, they hold every field.
template <typename Message>
void ExpectRoundTrip(const Message& message) {
  const auto wire = Encode(message);
  const auto back = Decode(wire);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->index(), message.index());
  EXPECT_EQ(Encode(*back).SerializeAsString(), wire.SerializeAsString());
}

TEST(ControlCodec, EveryMessageComesBackEqual) {
  Heartbeat heartbeat;
  heartbeat.resident_bytes = 5;
  heartbeat.stage = {
      1, 2, 3, 4, absl::Seconds(5), absl::Seconds(6), absl::Nanoseconds(7),
      8, 9, 10};
  for (const WorkerMessage& message : std::vector<WorkerMessage>{
           GoodRegister(), heartbeat, LoadProgress{"key", 5, 10},
           Loaded{"key", 1, 2, 3}, Active{7},
           Failed{Operation::kActivate, "", 7, absl::AbortedError("x")},
           StageEnded{7, absl::UnavailableError("gone")}}) {
    ExpectRoundTrip(message);
  }
  for (const KvType kv_type :
       {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8}) {
    Load load = GoodLoad();
    load.stage.kv_type = kv_type;
    ExpectRoundTrip(CoordinatorMessage(load));
    EXPECT_EQ(std::get<Load>(Decode(Encode(load)).value()).stage.kv_type,
              kv_type);
  }
  for (const CoordinatorMessage& message : std::vector<CoordinatorMessage>{
           Welcome{absl::Milliseconds(500), absl::Seconds(3)}, GoodLoad(),
           GoodActivate(), Deactivate{9}, Drain{}, Shutdown{}}) {
    ExpectRoundTrip(message);
  }
}

TEST(ControlCodec, FieldsKeepTheirPlaces) {
  const auto load = std::get<Load>(Decode(Encode(GoodLoad())).value());
  EXPECT_EQ(load.stage.last_layer, 9);
  EXPECT_EQ(load.stage.kv_type, KvType::kBf16);
  EXPECT_EQ(load.stage.prefill_chunk, 512);
  const auto activate =
      std::get<Activate>(Decode(Encode(GoodActivate())).value());
  EXPECT_EQ(activate.upstream_token[3], std::byte{9});
  EXPECT_EQ(activate.downstream_token[15], std::byte{0xFF});
  EXPECT_EQ(activate.downstream_limits.columns, 0);
  EXPECT_EQ(activate.upstream_limits.columns, 6);
  EXPECT_EQ(activate.timeout, absl::Seconds(10));
}

TEST(ControlCodec, ErrorsKeepKindObjectAndHint) {
  const absl::Status error =
      InputError("m.gguf: tensor blk.0", "ends after byte 7", "fetch it again");
  const auto failed = std::get<Failed>(
      Decode(Encode(Failed{Operation::kLoad, "key", 0, error})).value());
  EXPECT_EQ(failed.error, error);
  EXPECT_EQ(KindOf(failed.error), ErrorKind::kInput);
  EXPECT_EQ(HintOf(failed.error), "fetch it again");
}

TEST(ControlCodec, HostileErrorsAreTamed) {
  v1::WorkerMessage message;
  v1::Error& error = *message.mutable_stage_ended()->mutable_error();
  error.set_code(0);
  error.set_message("a\nb" + std::string(100000, 'x'));
  const auto ended = std::get<StageEnded>(Decode(message).value());
  EXPECT_TRUE(absl::IsInternal(ended.error));
  EXPECT_LT(ended.error.message().size(), 3000);
  EXPECT_THAT(std::string(ended.error.message()), HasSubstr("a\\x0ab"));
}

TEST(ControlCodec, RefusesWorkerFieldsOutOfRange) {
  const std::pair<const char*, std::function<void(v1::Register&)>> cases[] = {
      {"name", [](v1::Register& r) { r.set_name(""); }},
      {"name", [](v1::Register& r) { r.set_name(std::string(65, 'a')); }},
      {"name", [](v1::Register& r) { r.set_name("a b"); }},
      {"name", [](v1::Register& r) { r.set_name("../x"); }},
      {"version", [](v1::Register& r) { r.set_version("\n"); }},
      {"memory_bytes", [](v1::Register& r) { r.set_memory_bytes(~0ULL); }},
      {"data_address", [](v1::Register& r) { r.set_data_address("a"); }},
      {"data_address", [](v1::Register& r) { r.set_data_address("a:0"); }},
      {"pid", [](v1::Register& r) { r.set_pid(-1); }},
      {"load_key",
       [](v1::Register& r) { r.set_load_key(std::string(300, 'k')); }},
      {"kernels.kernel",
       [](v1::Register& r) { r.mutable_kernels(0)->set_kernel("a\"}"); }},
      {"kernels.compute",
       [](v1::Register& r) { r.mutable_kernels(0)->set_compute("\n"); }},
      {"kernels.version",
       [](v1::Register& r) { r.mutable_kernels(0)->set_version(""); }},
      {"kernels", [](v1::Register& r) { *r.add_kernels() = r.kernels(0); }},
      {"kernels",
       [](v1::Register& r) {
         for (int i = 0; i < 300; ++i) {
           v1::KernelUse& use = *r.add_kernels();
           use.set_kernel(std::to_string(i));
           use.set_version("v");
         }
       }},
  };
  for (const auto& [field, change] : cases) {
    v1::WorkerMessage message = Encode(WorkerMessage(GoodRegister()));
    change(*message.mutable_register_());
    const absl::Status status = Decode(message).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
  EXPECT_FALSE(Decode(v1::WorkerMessage()).ok());
  v1::WorkerMessage progress;
  progress.mutable_load_progress()->set_bytes_done(1);
  EXPECT_FALSE(Decode(progress).ok());
}

TEST(ControlCodec, RefusesStageFieldsOutOfRange) {
  const std::pair<const char*, std::function<void(v1::Stage&)>> cases[] = {
      {"first_layer", [](v1::Stage& s) { s.set_first_layer(10); }},
      {"first_layer", [](v1::Stage& s) { s.set_first_layer(-1); }},
      {"last_layer", [](v1::Stage& s) { s.set_last_layer(INT64_MAX); }},
      {"compute",
       [](v1::Stage& s) { s.set_compute(v1::COMPUTE_MODE_UNSPECIFIED); }},
      {"kv_type", [](v1::Stage& s) { s.set_kv_type(v1::KvType(9)); }},
      {"context", [](v1::Stage& s) { s.set_context(0); }},
      {"sequences", [](v1::Stage& s) { s.set_sequences(0); }},
      {"slots", [](v1::Stage& s) { s.set_slots(15); }},
      {"rows_max", [](v1::Stage& s) { s.set_rows_max(0); }},
      {"prefill_chunk", [](v1::Stage& s) { s.set_prefill_chunk(769); }},
      {"num_threads", [](v1::Stage& s) { s.set_num_threads(-1); }},
  };
  for (const auto& [field, change] : cases) {
    v1::CoordinatorMessage message = Encode(CoordinatorMessage(GoodLoad()));
    change(*message.mutable_load()->mutable_stage());
    const absl::Status status = Decode(message).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

TEST(ControlCodec, RefusesActivationsOutOfRange) {
  const std::pair<const char*, std::function<void(v1::Activate&)>> cases[] = {
      {"upstream_token",
       [](v1::Activate& a) { a.set_upstream_token("short"); }},
      {"downstream_address",
       [](v1::Activate& a) { a.set_downstream_address("h:99999"); }},
      {"upstream_window", [](v1::Activate& a) { a.set_upstream_window(0); }},
      {"downstream_window",
       [](v1::Activate& a) { a.set_downstream_window(1 << 20); }},
      {"timeout_ms", [](v1::Activate& a) { a.set_timeout_ms(0); }},
      {"slots",
       [](v1::Activate& a) { a.mutable_upstream_limits()->set_slots(0); }},
      {"rows_max times columns",
       [](v1::Activate& a) {
         a.mutable_downstream_limits()->set_rows_max(1 << 20);
         a.mutable_downstream_limits()->set_columns(1 << 20);
       }},
  };
  for (const auto& [field, change] : cases) {
    v1::CoordinatorMessage message = Encode(CoordinatorMessage(GoodActivate()));
    change(*message.mutable_activate());
    const absl::Status status = Decode(message).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

TEST(ControlCodec, LoadKeyTellsEveryFieldApart) {
  const Stage base = GoodLoad().stage;
  const std::string key = LoadKeyOf("d", base);
  EXPECT_EQ(LoadKeyOf("d", base), key);
  EXPECT_NE(LoadKeyOf("e", base), key);
  const std::function<void(Stage&)> changes[] = {
      [](Stage& s) { s.first_layer = 2; },
      [](Stage& s) { s.last_layer = 8; },
      [](Stage& s) { s.holds_embedding = false; },
      [](Stage& s) { s.holds_head = false; },
      [](Stage& s) { s.compute = ComputeMode::kFast; },
      [](Stage& s) { s.kv_type = KvType::kF32; },
      [](Stage& s) { s.context = 1; },
      [](Stage& s) { s.sequences = 1; },
      [](Stage& s) { s.slots = 25; },
      [](Stage& s) { s.rows_max = 1; },
      [](Stage& s) { s.prefill_chunk = 1; },
      [](Stage& s) { s.num_threads = 1; },
  };
  for (const auto& change : changes) {
    Stage stage = base;
    change(stage);
    EXPECT_NE(LoadKeyOf("d", stage), key);
  }
}

}  // namespace
}  // namespace millrace::control
