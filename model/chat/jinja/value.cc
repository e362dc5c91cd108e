#include "model/chat/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/chat/jinja/number.h"

namespace millrace::model::jinja {
namespace {

// A dictionary of this many entries is searched by hash.
constexpr size_t kIndexedFrom = 12;

// Tuples of tuples may share parts, so that few objects are many keys: what
// exceeds the budget is no key.
bool IsHashableWithin(const Value& value, int& budget) {
  if (--budget < 0) {
    return false;
  }
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kDict:
    case Kind::kNamespace:
    case Kind::kView:
      return false;
    case Kind::kString:
      budget -= static_cast<int>(
          std::min<int64_t>(value.text().size() >> 16, 1 << 16));
      return budget >= 0;
    case Kind::kTuple:
      for (const Value& item : value.sequence()->items) {
        if (!IsHashableWithin(item, budget)) {
          return false;
        }
      }
      return true;
    default:
      return true;
  }
}

bool SameScalarKey(const Value& a, const Value& b) {
  if (a.Is(Kind::kString) || b.Is(Kind::kString)) {
    return a.kind() == b.kind() && a.bytes() == b.bytes();
  }
  return HashableKey(a) == HashableKey(b);
}

}  // namespace

Value::Value(const Value& other)
    : kind_(other.kind_), untrusted_(other.untrusted_) {
  integer_ = other.integer_;
  Retain();
}

Value::Value(Value&& other) noexcept
    : kind_(other.kind_), untrusted_(other.untrusted_) {
  integer_ = other.integer_;
  other.kind_ = Kind::kNone;
}

Value& Value::operator=(const Value& other) {
  if (this != &other) {
    other.Retain();
    Release();
    kind_ = other.kind_;
    untrusted_ = other.untrusted_;
    integer_ = other.integer_;
  }
  return *this;
}

Value& Value::operator=(Value&& other) noexcept {
  if (this != &other) {
    Release();
    kind_ = other.kind_;
    untrusted_ = other.untrusted_;
    integer_ = other.integer_;
    other.kind_ = Kind::kNone;
  }
  return *this;
}

Value::~Value() { Release(); }

void Value::Retain() const {
  if (Counted() && string_ != nullptr) {
    ++string_->references;
  }
}

void Value::Release() {
  if (Counted() && string_ != nullptr && --string_->references == 0) {
    string_->heap->Free(string_);
  }
  kind_ = Kind::kNone;
}

Value Value::Bool(bool value, bool untrusted) {
  Value out(Kind::kBool, untrusted);
  out.boolean_ = value;
  return out;
}

Value Value::Of(Integer value, bool untrusted) {
  Value out(Kind::kInteger, untrusted);
  out.integer_ = value;
  return out;
}

Value Value::Float(double value, bool untrusted) {
  Value out(Kind::kFloat, untrusted);
  out.float_ = value;
  return out;
}

Value Value::String(StringObject* object) {
  Value out(Kind::kString, false);
  out.string_ = object;
  return out;
}

Value Value::Undefined(StringObject* reason) {
  Value out(Kind::kUndefined, false);
  out.string_ = reason;
  return out;
}

Value Value::Of(Kind kind, Object* object) {
  Value out(kind, false);
  out.object_ = object;
  return out;
}

bool Value::IsNumber() const { return IsIntegral() || kind_ == Kind::kFloat; }

bool Value::IsIntegral() const {
  return kind_ == Kind::kBool || kind_ == Kind::kInteger;
}

Integer Value::integer() const {
  return kind_ == Kind::kBool ? (boolean_ ? 1 : 0) : integer_;
}

double Value::number() const {
  return kind_ == Kind::kFloat ? float_ : static_cast<double>(integer());
}

const Text& Value::text() const { return string_->text; }

std::string Value::reason() const {
  return kind_ == Kind::kUndefined && string_ != nullptr
             ? std::string(string_->text.bytes())
             : "a value is undefined";
}

SequenceObject* Value::sequence() const {
  return static_cast<SequenceObject*>(object_);
}

DictObject* Value::dict() const { return static_cast<DictObject*>(object_); }

bool IsHashable(const Value& value) {
  int budget = 1000;
  return IsHashableWithin(value, budget);
}

std::string HashableKey(const Value& key) {
  switch (key.kind()) {
    case Kind::kUndefined:
      return "u";
    case Kind::kNone:
      return "0";
    case Kind::kBool:
    case Kind::kInteger:
      return absl::StrCat("i", IntegerText(key.integer()));
    case Kind::kFloat: {
      const double number = key.number();
      if (std::trunc(number) == number && std::abs(number) < 1e30) {
        return absl::StrCat("i", IntegerText(static_cast<Integer>(number)));
      }
      return absl::StrCat("f", FloatText(number));
    }
    case Kind::kString:
      return absl::StrCat("s", key.bytes());
    case Kind::kTuple: {
      std::string out = "(";
      for (const Value& item : key.sequence()->items) {
        const std::string part = HashableKey(item);
        absl::StrAppend(&out, part.size(), ":", part);
      }
      return out;
    }
    default:
      return absl::StrCat("o", reinterpret_cast<uintptr_t>(key.object()));
  }
}

int64_t DictObject::IndexOf(const Value& key) const {
  if (!index_.empty()) {
    const auto found = index_.find(HashableKey(key));
    return found == index_.end() ? -1 : static_cast<int64_t>(found->second);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (SameScalarKey(entries[i].first, key)) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

Value* DictObject::Find(const Value& key) {
  const int64_t index = IndexOf(key);
  return index < 0 ? nullptr : &entries[static_cast<size_t>(index)].second;
}

Value* DictObject::Find(absl::string_view key) {
  if (!index_.empty()) {
    const auto found = index_.find(absl::StrCat("s", key));
    return found == index_.end() ? nullptr : &entries[found->second].second;
  }
  for (auto& [name, value] : entries) {
    if (name.Is(Kind::kString) && name.bytes() == key) {
      return &value;
    }
  }
  return nullptr;
}

void DictObject::Set(const Value& key, Value value) {
  if (Value* present = Find(key)) {
    *present = std::move(value);
    return;
  }
  entries.emplace_back(key, std::move(value));
  if (!index_.empty()) {
    index_.emplace(HashableKey(key), entries.size() - 1);
  } else if (entries.size() >= kIndexedFrom) {
    for (size_t i = 0; i < entries.size(); ++i) {
      index_.emplace(HashableKey(entries[i].first), i);
    }
  }
}

absl::Status Heap::Ensure(int64_t bytes) const {
  if (bytes > bytes_max_ - bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the template needs more than ", bytes_max_ >> 20,
                     " MiB of memory, which is the limit"));
  }
  return absl::OkStatus();
}

absl::Status Heap::Charge(int64_t bytes) {
  MILLRACE_RETURN_IF_ERROR(Ensure(bytes));
  bytes_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<Value> Heap::MakeString(Text text) {
  const int64_t bytes =
      text.memory_bytes() + static_cast<int64_t>(sizeof(StringObject));
  MILLRACE_RETURN_IF_ERROR(Charge(bytes));
  return Value::String(new StringObject{
      .text = std::move(text), .heap = this, .charged_bytes = bytes});
}

void Heap::Free(StringObject* object) {
  bytes_ -= object->charged_bytes;
  delete object;
}

Value Heap::MakeUndefined(absl::string_view reason) {
  Text text(reason, false);
  const int64_t bytes =
      text.memory_bytes() + static_cast<int64_t>(sizeof(StringObject));
  if (!Charge(bytes).ok()) {
    return Value();
  }
  return Value::Undefined(new StringObject{
      .text = std::move(text), .heap = this, .charged_bytes = bytes});
}

absl::StatusOr<Value> Heap::MakeSequence(Kind kind, std::vector<Value> items,
                                         bool untrusted) {
  MILLRACE_RETURN_IF_ERROR(
      Charge(static_cast<int64_t>(items.capacity() * sizeof(Value))));
  MILLRACE_ASSIGN_OR_RETURN(SequenceObject * object, New<SequenceObject>());
  object->items = std::move(items);
  object->untrusted = untrusted;
  return Value::Of(kind, object);
}

absl::StatusOr<Value> Heap::MakeIterator(std::vector<Value> items) {
  MILLRACE_RETURN_IF_ERROR(
      Charge(static_cast<int64_t>(items.capacity() * sizeof(Value))));
  MILLRACE_ASSIGN_OR_RETURN(IteratorObject * object, New<IteratorObject>());
  object->items = std::move(items);
  return Value::Of(Kind::kIterator, object);
}

absl::Status Heap::Put(DictObject& dict, const Value& key, Value value) {
  // The entry, its share of the index and the copy of the key in it.
  const auto entry_bytes = static_cast<int64_t>(sizeof(Value) * 2 + 64);
  const int64_t key_bytes = key.Is(Kind::kString) ? key.text().size() : 32;
  MILLRACE_RETURN_IF_ERROR(Charge(entry_bytes + key_bytes));
  dict.Set(key, std::move(value));
  return absl::OkStatus();
}

}  // namespace millrace::model::jinja
