#pragma once

#include "base/mutex.h"

namespace millrace {

// One event between threads. As absl::Notification, which the thread sanitizer
// cannot see into as packaged.
class Notification {
 public:
  void Notify() {
    MutexLock lock(mutex_);
    notified_ = true;
    changed_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (!notified_) {
      changed_.Wait(mutex_);
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
