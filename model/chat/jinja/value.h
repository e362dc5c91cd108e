#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/jinja/text.h"

namespace millrace::model::jinja {

// Python's integers as far as templates need them: 127 bits and a sign. What
// goes beyond is an error, never a wrong number.
__extension__ typedef __int128 Integer;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInteger,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kNamespace,
  kIterator,  // what map, select, ... give: read once, no length
  kView,      // keys(), values(), items() of a dictionary
  kRange,
  kFunction,  // built in, or a method with its receiver
  kMacro,     // also caller()
  kLoop,
  kCycler,
  kJoiner,
  kMissing,  // an argument that was not given; never seen by a template
};

class Heap;
struct Object;
struct StringObject;
struct SequenceObject;
struct DictObject;
struct IteratorObject;
struct ViewObject;
struct RangeObject;
struct FunctionObject;
struct MacroObject;
struct LoopObject;
struct CyclerObject;
struct JoinerObject;

// One value of a template. Strings are shared and counted; everything else on
// the heap lives until the rendering ends, so that cycles and deep nesting
// cost nothing to take down. Not thread-safe; must not outlive its Heap.
class Value {
 public:
  Value() : Value(Kind::kUndefined, false) {}
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  static Value Missing() { return Value(Kind::kMissing, false); }
  // `untrusted`: the scalar stems from the input, and so does its print.
  static Value None(bool untrusted = false) {
    return Value(Kind::kNone, untrusted);
  }
  static Value Bool(bool value, bool untrusted = false);
  static Value Of(Integer value, bool untrusted = false);
  static Value Float(double value, bool untrusted = false);
  // Takes over one reference to the string.
  static Value String(StringObject* object);
  // `reason` (one reference, may be null) is what an error about it says.
  static Value Undefined(StringObject* reason);
  static Value Of(Kind kind, Object* object);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool Is(Kind kind) const { return kind_ == kind; }
  [[nodiscard]] bool untrusted() const { return untrusted_; }
  // Bool, integer or float.
  [[nodiscard]] bool IsNumber() const;
  [[nodiscard]] bool IsIntegral() const;  // bool or integer

  // Each asks for the kind it names.
  [[nodiscard]] bool boolean() const { return boolean_; }
  [[nodiscard]] Integer integer() const;  // also of a bool
  [[nodiscard]] double number() const;    // of any number
  [[nodiscard]] const Text& text() const;
  [[nodiscard]] absl::string_view bytes() const { return text().bytes(); }
  // Why it is undefined; may be empty.
  [[nodiscard]] std::string reason() const;
  [[nodiscard]] SequenceObject* sequence() const;  // list or tuple
  [[nodiscard]] DictObject* dict() const;          // dictionary or namespace
  [[nodiscard]] Object* object() const { return object_; }
  template <typename T>
  [[nodiscard]] T* As() const {
    return static_cast<T*>(object_);
  }

 private:
  Value(Kind kind, bool untrusted) : kind_(kind), untrusted_(untrusted) {
    integer_ = 0;
    object_ = nullptr;
  }
  [[nodiscard]] bool Counted() const {
    return kind_ == Kind::kString || kind_ == Kind::kUndefined;
  }
  void Retain() const;
  void Release();

  Kind kind_;
  bool untrusted_ = false;
  union {
    bool boolean_;
    Integer integer_;
    double float_;
    StringObject* string_;
    Object* object_;
  };
};

struct StringObject {
  Text text;
  Heap* heap = nullptr;
  int64_t charged_bytes = 0;
  int64_t references = 1;
};

struct Object {
  virtual ~Object() = default;
};

struct SequenceObject : Object {
  std::vector<Value> items;
  bool untrusted = false;  // stems from the input: never changes
  bool is_group = false;   // of groupby: has .grouper and .list
};

// Keeps the order of insertion. Keys are hashable values.
struct DictObject : Object {
  std::vector<std::pair<Value, Value>> entries;
  bool untrusted = false;

  // Null when there is none. `key` is hashable (see HashableKey).
  [[nodiscard]] Value* Find(const Value& key);
  [[nodiscard]] Value* Find(absl::string_view key);
  void Set(const Value& key, Value value);

 private:
  [[nodiscard]] int64_t IndexOf(const Value& key) const;
  // Filled once there are many entries.
  absl::flat_hash_map<std::string, size_t> index_;
};

struct IteratorObject : Object {
  std::vector<Value> items;
  size_t next = 0;
};

struct ViewObject : Object {
  enum class Part { kKeys, kValues, kItems };
  DictObject* dict = nullptr;
  Part part = Part::kItems;
};

struct RangeObject : Object {
  int64_t start = 0;
  int64_t stop = 0;  // as it was given: for printing
  int64_t step = 1;
  int64_t count = 0;
};

struct CyclerObject : Object {
  std::vector<Value> items;
  size_t position = 0;
};

struct JoinerObject : Object {
  Value separator;
  bool used = false;
};

// Whether dictionaries and sets take it: scalars, strings and tuples of such.
bool IsHashable(const Value& value);
// Equal exactly for keys that are equal. `key` is hashable.
std::string HashableKey(const Value& key);

// Owns what a rendering creates and counts its bytes. One thread.
class Heap {
 public:
  explicit Heap(int64_t bytes_max) : bytes_max_(bytes_max) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // kResourceExhausted when the limit would be passed; nothing is counted then.
  [[nodiscard]] absl::Status Charge(int64_t bytes);
  void Release(int64_t bytes) { bytes_ -= bytes; }
  // Whether `bytes` more would still fit.
  [[nodiscard]] absl::Status Ensure(int64_t bytes) const;

  absl::StatusOr<Value> MakeString(Text text);
  absl::StatusOr<Value> MakeString(absl::string_view bytes) {
    return MakeString(Text(bytes, false));
  }
  // Undefined, with a reason; without one when memory has run out.
  Value MakeUndefined(absl::string_view reason);
  absl::StatusOr<Value> MakeSequence(Kind kind, std::vector<Value> items,
                                     bool untrusted = false);
  absl::StatusOr<Value> MakeList(std::vector<Value> items) {
    return MakeSequence(Kind::kList, std::move(items));
  }
  absl::StatusOr<Value> MakeTuple(std::vector<Value> items) {
    return MakeSequence(Kind::kTuple, std::move(items));
  }
  absl::StatusOr<Value> MakeIterator(std::vector<Value> items);

  // A new object of type T, owned by the heap.
  template <typename T>
  absl::StatusOr<T*> New() {
    if (absl::Status status = Charge(static_cast<int64_t>(sizeof(T) + 64));
        !status.ok()) {
      return status;
    }
    objects_.push_back(std::make_unique<T>());
    return static_cast<T*>(objects_.back().get());
  }
  // Adds or replaces an entry and counts it.
  absl::Status Put(DictObject& dict, const Value& key, Value value);

 private:
  friend class Value;
  void Free(StringObject* object);

  const int64_t bytes_max_;
  int64_t bytes_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace millrace::model::jinja
