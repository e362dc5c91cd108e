#include <algorithm>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/error.h"
#include "base/status_macros.h"
#include "model/chat/jinja/access.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/print.h"

namespace millrace::model::jinja {
namespace {

// As Jinja's sandbox has it.
constexpr Integer kRangeMax = 100'000;

absl::StatusOr<Value> RangeGlobal(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(int64_t start,
                            IntegerArgument(arguments, 0, "range", 0));
  int64_t stop = start;
  if (arguments.positional[1].Is(Kind::kMissing)) {
    start = 0;
  } else {
    MILLRACE_ASSIGN_OR_RETURN(stop, IntegerArgument(arguments, 1, "range", 0));
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t step,
                            IntegerArgument(arguments, 2, "range", 1));
  if (step == 0) {
    return Fail("range() arg 3 must not be zero");
  }
  const Integer distance =
      step > 0 ? Integer{stop} - start : Integer{start} - stop;
  const Integer stride = step > 0 ? Integer{step} : -Integer{step};
  const Integer count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  if (count > kRangeMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("range too big: the limit is ",
                     static_cast<int64_t>(kRangeMax), " numbers"));
  }
  MILLRACE_ASSIGN_OR_RETURN(RangeObject * range,
                            runtime.heap().New<RangeObject>());
  range->start = start;
  range->stop = stop;
  range->step = step;
  range->count = static_cast<int64_t>(count);
  return Value::Of(Kind::kRange, range);
}

absl::Status PutChecked(Runtime& runtime, DictObject& dict, const Value& key,
                        const Value& value, bool is_namespace) {
  MILLRACE_RETURN_IF_ERROR(runtime.Spend(1));
  if (!IsHashable(key)) {
    return Fail(absl::StrCat("unhashable type: '", TypeName(key), "'"));
  }
  if (is_namespace && key.Is(Kind::kString) &&
      absl::StartsWith(key.bytes(), "_")) {
    return Fail(absl::StrCat("namespace name '", Printable(key.bytes()), "'"));
  }
  return runtime.heap().Put(dict, key, value);
}

// dict(...) and namespace(...): a mapping or pairs, then named values.
template <Kind kind>
absl::StatusOr<Value> DictGlobal(Runtime& runtime, Arguments& arguments) {
  constexpr bool kIsNamespace = kind == Kind::kNamespace;
  MILLRACE_ASSIGN_OR_RETURN(DictObject * dict,
                            runtime.heap().New<DictObject>());
  if (arguments.positional.size() > 1) {
    return Fail("dict takes at most one positional argument");
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.Is(Kind::kDict)) {
      for (const auto& [key, value] : source.dict()->entries) {
        MILLRACE_RETURN_IF_ERROR(
            PutChecked(runtime, *dict, key, value, kIsNamespace));
      }
    } else {
      MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> pairs,
                                ItemsOf(runtime, source));
      for (const Value& pair : pairs) {
        MILLRACE_ASSIGN_OR_RETURN(const std::vector<Value> parts,
                                  ItemsOf(runtime, pair));
        if (parts.size() != 2) {
          return Fail("dict needs pairs");
        }
        MILLRACE_RETURN_IF_ERROR(
            PutChecked(runtime, *dict, parts[0], parts[1], kIsNamespace));
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    MILLRACE_ASSIGN_OR_RETURN(
        const Value key,
        runtime.heap().MakeString(Text(name, arguments.untrusted_names)));
    MILLRACE_RETURN_IF_ERROR(
        PutChecked(runtime, *dict, key, value, kIsNamespace));
  }
  return Value::Of(kind, dict);
}

absl::StatusOr<Value> CyclerGlobal(Runtime& runtime, Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) {
    return Fail("at least one item has to be provided");
  }
  MILLRACE_ASSIGN_OR_RETURN(CyclerObject * cycler,
                            runtime.heap().New<CyclerObject>());
  cycler->items = std::move(arguments.positional);
  return Value::Of(Kind::kCycler, cycler);
}

absl::StatusOr<Value> JoinerGlobal(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(JoinerObject * joiner,
                            runtime.heap().New<JoinerObject>());
  if (arguments.positional[0].Is(Kind::kMissing)) {
    MILLRACE_ASSIGN_OR_RETURN(joiner->separator,
                              runtime.heap().MakeString(", "));
  } else {
    joiner->separator = arguments.positional[0];
  }
  return Value::Of(Kind::kJoiner, joiner);
}

absl::StatusOr<Value> RaiseException(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const Text message,
                            TextOf(runtime, arguments.positional[0]));
  return absl::AbortedError(message.bytes());
}

// One conversion of strftime on a broken-down time without a zone.
std::string Conversion(const std::tm& time, char flag, char letter) {
  if (letter == 'f') {
    return "000000";
  }
  if (letter == 'z' || letter == 'Z') {
    return "";
  }
  std::string format = "%";
  if (flag != 0) {
    format.push_back(flag);
  }
  format.push_back(letter);
  char buffer[128];
  const size_t size =
      std::strftime(buffer, sizeof(buffer), format.c_str(), &time);
  return {buffer, size};
}

absl::StatusOr<Value> StrftimeNow(Runtime& runtime, Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(
      const Text* format,
      TextArgument(arguments, 0, "the format of strftime_now"));
  MILLRACE_RETURN_IF_ERROR(runtime.SpendWork(format->size() * 16));
  const std::tm time = absl::ToTM(runtime.now(), absl::LocalTimeZone());
  static constexpr absl::string_view kKnown =
      "aAbBcCdDeFfgGhHIjklmMnpPrRsStTuUVwWxXyYzZ";
  TextWriter writer(runtime);
  const absl::string_view bytes = format->bytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    const auto here = static_cast<int64_t>(at);
    size_t next = at + 1;
    char flag = 0;
    if (bytes[at] == '%' && next < bytes.size() &&
        (bytes[next] == '-' || bytes[next] == '_' || bytes[next] == '0' ||
         bytes[next] == '^')) {
      flag = bytes[next++];
    }
    if (bytes[at] != '%' || next >= bytes.size()) {
      writer.Append(*format, here, here + 1);
      continue;
    }
    const bool untrusted = format->AnyUntrusted(here, here + 1);
    if (bytes[next] == '%') {
      writer.Append("%", untrusted);
      at = next;
    } else if (absl::StrContains(kKnown, bytes[next])) {
      writer.Append(Conversion(time, flag, bytes[next]), untrusted);
      at = next;
    } else {
      writer.Append(*format, here, here + 1);
    }
  }
  return Finish(runtime, writer);
}

constexpr Native kGlobals[] = {
    {"cycler", "*", 0, CyclerGlobal},
    {"dict", "*", 0, DictGlobal<Kind::kDict>},
    {"joiner", "sep", 0, JoinerGlobal},
    {"namespace", "*", 0, DictGlobal<Kind::kNamespace>},
    {"raise_exception", "message", 1, RaiseException},
    {"range", "start,stop,step", 1, RangeGlobal},
    {"strftime_now", "format", 1, StrftimeNow},
};

}  // namespace

const Native* FindGlobal(absl::string_view name) {
  const auto* found =
      std::find_if(std::begin(kGlobals), std::end(kGlobals),
                   [&](const Native& native) { return name == native.name; });
  return found == std::end(kGlobals) ? nullptr : found;
}

}  // namespace millrace::model::jinja
