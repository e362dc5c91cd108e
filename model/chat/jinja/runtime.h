#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "model/chat/chat_template.h"
#include "model/chat/jinja/value.h"

namespace millrace::model::jinja {

// What one rendering may still spend, and its heap. One thread.
// Errors of the template are kInvalidArgument, passed limits
// kResourceExhausted, raise_exception kAborted with its text alone.
class Runtime {
 public:
  Runtime(const RenderLimits& limits, absl::Time now)
      : heap_(limits.memory_bytes_max),
        steps_left_(limits.steps_max),
        steps_max_(limits.steps_max),
        now_(now) {}

  [[nodiscard]] Heap& heap() { return heap_; }
  [[nodiscard]] absl::Time now() const { return now_; }

  // Takes `steps` off the budget. About a hundred nanoseconds each.
  [[nodiscard]] absl::Status Spend(int64_t steps) {
    steps_left_ -= steps;
    return steps_left_ >= 0 ? absl::OkStatus() : OutOfSteps();
  }
  // For one plain pass over so many bytes (a copy, a search).
  [[nodiscard]] absl::Status SpendPass(int64_t bytes) {
    return Spend(1 + bytes / 256);
  }
  // For work of some ten nanoseconds on each byte (case mapping, JSON).
  [[nodiscard]] absl::Status SpendWork(int64_t bytes) {
    return Spend(1 + bytes / 16);
  }

  int depth = 0;  // of the C++ stack; see DepthGuard

 private:
  [[nodiscard]] absl::Status OutOfSteps() const;

  Heap heap_;
  int64_t steps_left_;
  const int64_t steps_max_;
  const absl::Time now_;
};

// Counts one level of recursion for as long as it lives.
class DepthGuard {
 public:
  explicit DepthGuard(Runtime& runtime) : runtime_(runtime) {
    ++runtime_.depth;
  }
  ~DepthGuard() { --runtime_.depth; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  // kResourceExhausted when nested too deep.
  [[nodiscard]] absl::Status status() const;

 private:
  // A level takes up to 2 KiB of stack with sanitizers: 1.2 MiB in all, which
  // fits the stacks of all our threads. Real templates stay below 60.
  static constexpr int kDepthMax = 600;
  Runtime& runtime_;
};

// The longest text that one value may hold. Twice that may be alive while it
// grows.
inline constexpr int64_t kTextBytesMax = int64_t{32} << 20;

// Collects text up to a limit, counted on the heap; further text is dropped and
// `status` says so. Must not outlive the runtime.
class TextWriter {
 public:
  explicit TextWriter(Runtime& runtime, int64_t bytes_max = kTextBytesMax)
      : heap_(runtime.heap()), bytes_max_(bytes_max) {}
  ~TextWriter() { heap_.Release(charged_bytes_); }
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  void Append(absl::string_view bytes, bool untrusted) {
    if (Fits(static_cast<int64_t>(bytes.size()))) {
      text_.Append(bytes, untrusted);
      Recount();
    }
  }
  void Append(const Text& text) { Append(text, 0, text.size()); }
  void Append(const Text& text, int64_t begin, int64_t end) {
    if (Fits(end - begin)) {
      text_.Append(text, begin, end);
      Recount();
    }
  }
  [[nodiscard]] bool full() const { return !status_.ok(); }
  [[nodiscard]] absl::Status status() const { return status_; }
  [[nodiscard]] const Text& text() const { return text_; }
  // The text, which the heap no longer counts.
  [[nodiscard]] Text Take();

 private:
  [[nodiscard]] bool Fits(int64_t bytes) {
    if (text_.size() + bytes > bytes_max_) {
      Overflow();
    }
    return status_.ok();
  }
  void Recount() {
    if (text_.memory_bytes() > charged_bytes_) {
      Charge();
    }
  }
  void Overflow();
  void Charge();

  Heap& heap_;
  const int64_t bytes_max_;
  int64_t charged_bytes_ = 0;
  absl::Status status_;
  Text text_;
};

// The value of what `writer` collected, or its error.
absl::StatusOr<Value> Finish(Runtime& runtime, TextWriter& writer);

// An error of the template: "TypeError" and the like are not told apart.
absl::Status Fail(absl::string_view what);
// The same where `value` is undefined: says why it is.
absl::Status FailUndefined(const Value& value);
// As Python names the type of a value: "str", "NoneType", "dict".
absl::string_view TypeName(const Value& value);

// The arguments of a call. Bound natives find one value for each of their
// parameters in `positional`, kMissing where none was given.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  // Whether a name among them stems from the input (`**dict`).
  bool untrusted_names = false;
};

// A filter, test, method or global function that is built in.
struct Native {
  const char* name;
  // Names with commas, in order; "*" leaves the arguments as they came.
  const char* parameters;
  int required;
  absl::StatusOr<Value> (*function)(Runtime& runtime, Arguments& arguments);
};

struct FunctionObject : Object {
  const Native* native = nullptr;
  Value receiver = Value::Missing();  // of a method
};

// Binds and calls; the receiver of a method or the value of a filter is the
// first positional argument.
absl::StatusOr<Value> CallNative(Runtime& runtime, const Native& native,
                                 Arguments& arguments);

// Reads of bound arguments; the error names `name`.
absl::StatusOr<int64_t> IntegerArgument(const Arguments& arguments,
                                        size_t index, absl::string_view name,
                                        int64_t otherwise);
absl::StatusOr<const Text*> TextArgument(const Arguments& arguments,
                                         size_t index, absl::string_view name);
// Missing or None: nothing to use.
bool IsGiven(const Arguments& arguments, size_t index);
// Python's truth of an argument, `otherwise` where it was not given.
bool FlagArgument(const Arguments& arguments, size_t index, bool otherwise);

}  // namespace millrace::model::jinja
