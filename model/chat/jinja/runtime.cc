#include "model/chat/jinja/runtime.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/operators.h"

namespace millrace::model::jinja {

absl::Status Runtime::OutOfSteps() const {
  return absl::ResourceExhaustedError(
      absl::StrCat("the template takes more than ", steps_max_,
                   " steps, which is the limit"));
}

absl::Status DepthGuard::status() const {
  if (runtime_.depth > kDepthMax) {
    return absl::ResourceExhaustedError(
        "the template or a value is nested too deep, or a macro calls itself "
        "without end");
  }
  return absl::OkStatus();
}

void TextWriter::Overflow() {
  if (status_.ok()) {
    status_ = absl::ResourceExhaustedError(absl::StrCat(
        "a text grows beyond ", bytes_max_, " bytes, which is the limit"));
  }
}

void TextWriter::Charge() {
  const int64_t bytes = text_.memory_bytes();
  const absl::Status charged = heap_.Charge(bytes - charged_bytes_);
  if (charged.ok()) {
    charged_bytes_ = bytes;
  } else if (status_.ok()) {
    status_ = charged;
  }
}

Text TextWriter::Take() {
  heap_.Release(charged_bytes_);
  charged_bytes_ = 0;
  return std::move(text_);
}

absl::StatusOr<Value> Finish(Runtime& runtime, TextWriter& writer) {
  MILLRACE_RETURN_IF_ERROR(writer.status());
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(writer.text().size()));
  return runtime.heap().MakeString(writer.Take());
}

absl::Status Fail(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

absl::Status FailUndefined(const Value& value) { return Fail(value.reason()); }

absl::string_view TypeName(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kMissing:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInteger:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kIterator:
      return "generator";
    case Kind::kView:
      return "dict view";
    case Kind::kRange:
      return "range";
    case Kind::kFunction:
      return "function";
    case Kind::kMacro:
      return "Macro";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

absl::StatusOr<Value> CallNative(Runtime& runtime, const Native& native,
                                 Arguments& arguments) {
  if (absl::string_view(native.parameters) == "*") {
    return native.function(runtime, arguments);
  }
  std::vector<absl::string_view> names =
      absl::StrSplit(native.parameters, ',', absl::SkipEmpty());
  if (arguments.positional.size() > names.size()) {
    return Fail(absl::StrCat(native.name, "() takes at most ", names.size(),
                             " arguments"));
  }
  const size_t given = arguments.positional.size();
  arguments.positional.resize(names.size(), Value::Missing());
  for (auto& [name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), name);
    const auto index = static_cast<size_t>(at - names.begin());
    if (at == names.end()) {
      return Fail(absl::StrCat(native.name,
                               "() got an unexpected keyword argument '",
                               Printable(name), "'"));
    }
    if (index < given || !arguments.positional[index].Is(Kind::kMissing)) {
      return Fail(absl::StrCat(native.name, "() got two values for argument '",
                               Printable(name), "'"));
    }
    arguments.positional[index] = std::move(value);
  }
  arguments.named.clear();
  for (int i = 0; i < native.required; ++i) {
    if (arguments.positional[static_cast<size_t>(i)].Is(Kind::kMissing)) {
      return Fail(absl::StrCat(native.name, "() misses the argument '",
                               names[static_cast<size_t>(i)], "'"));
    }
  }
  return native.function(runtime, arguments);
}

absl::StatusOr<int64_t> IntegerArgument(const Arguments& arguments,
                                        size_t index, absl::string_view name,
                                        int64_t otherwise) {
  const Value& value = arguments.positional[index];
  if (value.Is(Kind::kMissing) || value.Is(Kind::kNone)) {
    return otherwise;
  }
  if (!value.IsIntegral()) {
    return Fail(
        absl::StrCat(name, " must be an integer, not ", TypeName(value)));
  }
  // Beyond this everything is too large alike, and sums of two cannot wrap.
  constexpr int64_t kFar = int64_t{1} << 60;
  const Integer integer = value.integer();
  return static_cast<int64_t>(
      std::clamp<Integer>(integer, Integer{-kFar}, Integer{kFar}));
}

absl::StatusOr<const Text*> TextArgument(const Arguments& arguments,
                                         size_t index, absl::string_view name) {
  const Value& value = arguments.positional[index];
  if (!value.Is(Kind::kString)) {
    return Fail(absl::StrCat(name, " must be a string, not ", TypeName(value)));
  }
  return &value.text();
}

bool IsGiven(const Arguments& arguments, size_t index) {
  const Value& value = arguments.positional[index];
  return !value.Is(Kind::kMissing) && !value.Is(Kind::kNone);
}

bool FlagArgument(const Arguments& arguments, size_t index, bool otherwise) {
  const Value& value = arguments.positional[index];
  return value.Is(Kind::kMissing) ? otherwise : IsTrue(value);
}

}  // namespace millrace::model::jinja
