#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "coordinator/engine/engine.h"
#include "gtest/gtest.h"

namespace millrace::coordinator {

// Keeps what it hears; any thread may wait for the end.
class RecordingObserver final : public RequestObserver {
 public:
  void OnStart() override {
    Hear([&] { ++starts; });
  }
  void OnPromptScore(const ScoreEvent& event) override {
    Hear([&] { scores.push_back(event); });
  }
  void OnToken(const TokenEvent& event) override {
    Hear([&] { tokens.push_back(event); });
    if (on_token != nullptr) {
      on_token();
    }
  }
  void OnFinish(FinishReason reason) override {
    Hear([&] { finish = reason; });
  }
  void OnError(const absl::Status& status) override {
    Hear([&] { error = status; });
  }

  // Blocks until the request has ended.
  void Await() {
    MutexLock lock(mutex_);
    while (!finish && !error) {
      changed_.Wait(mutex_);
    }
  }
  bool ended() {
    MutexLock lock(mutex_);
    return finish || error;
  }

  // Read after Await.
  int64_t starts = 0;
  std::vector<TokenEvent> tokens;
  std::vector<ScoreEvent> scores;
  std::optional<FinishReason> finish;
  std::optional<absl::Status> error;
  // Set before the request is submitted.
  std::function<void()> on_token;

 private:
  void Hear(const std::function<void()>& note) {
    {
      MutexLock lock(mutex_);
      EXPECT_FALSE(finish || error) << "heard after its end";
      note();
    }
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
};

}  // namespace millrace::coordinator
