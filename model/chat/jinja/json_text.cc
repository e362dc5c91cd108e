#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "model/chat/jinja/number.h"
#include "model/chat/jinja/operators.h"
#include "model/chat/jinja/print.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

// "" where the character stands for itself.
std::string Escaped(char32_t c, bool ensure_ascii) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    default:
      break;
  }
  const auto code = static_cast<uint32_t>(c);
  if (code < 0x20 || (ensure_ascii && code > 0x7E && code <= 0xFFFF)) {
    return code == 0x7F ? "" : absl::StrFormat("\\u%04x", code);
  }
  if (ensure_ascii && code > 0xFFFF) {
    const uint32_t rest = code - 0x10000;
    return absl::StrFormat("\\u%04x\\u%04x", 0xD800 + (rest >> 10),
                           0xDC00 + (rest & 0x3FF));
  }
  return "";
}

class JsonPrinter {
 public:
  JsonPrinter(Runtime& runtime, const JsonStyle& style, TextWriter& writer)
      : runtime_(runtime), style_(style), writer_(writer) {}

  absl::Status Write(const Value& value, int level) {
    const DepthGuard guard(runtime_);
    MILLRACE_RETURN_IF_ERROR(guard.status());
    MILLRACE_RETURN_IF_ERROR(runtime_.Spend(1));
    switch (value.kind()) {
      case Kind::kString:
        return WriteText(value.text());
      case Kind::kList:
      case Kind::kTuple:
        return WriteSequence(*value.sequence(), level);
      case Kind::kDict:
        return WriteDict(*value.dict(), level);
      default:
        break;
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::string scalar, Scalar(value));
    writer_.Append(scalar, value.untrusted());
    return writer_.status();
  }

 private:
  static absl::StatusOr<std::string> Scalar(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return value.boolean() ? "true" : "false";
      case Kind::kInteger:
        return IntegerText(value.integer());
      case Kind::kFloat: {
        const double number = value.number();
        if (std::isnan(number)) {
          return "NaN";
        }
        if (std::isinf(number)) {
          return number < 0 ? "-Infinity" : "Infinity";
        }
        return FloatText(number);
      }
      default:
        return Fail(absl::StrCat("Object of type ", TypeName(value),
                                 " is not JSON serializable"));
    }
  }

  absl::Status WriteText(const Text& text) {
    MILLRACE_RETURN_IF_ERROR(runtime_.SpendWork(text.size()));
    const bool edge = text.AnyUntrusted();
    writer_.Append("\"", edge);
    int64_t plain = 0;
    for (int64_t at = 0; at < text.size();) {
      const int64_t next = NextPosition(text.bytes(), at);
      const std::string shown =
          Escaped(CodePointAt(text.bytes(), at), style_.ensure_ascii);
      if (!shown.empty()) {
        writer_.Append(text, plain, at);
        writer_.Append(shown, text.AnyUntrusted(at, next));
        plain = next;
      }
      at = next;
    }
    writer_.Append(text, plain, text.size());
    writer_.Append("\"", edge);
    return writer_.status();
  }

  // Punctuation counts as untrusted where the container does, so that a tool
  // comes out in one piece.
  void Punctuate(const Text& text, bool untrusted) {
    if (untrusted) {
      writer_.Append(text.bytes(), true);
    } else {
      writer_.Append(text);
    }
  }

  void NewLine(int level, bool untrusted) {
    if (!style_.indented) {
      return;
    }
    writer_.Append("\n", untrusted);
    for (int i = 0; i < level && !writer_.full(); ++i) {
      Punctuate(style_.indent, untrusted);
    }
  }

  absl::Status WriteSequence(const SequenceObject& sequence, int level) {
    const bool untrusted = sequence.untrusted;
    if (sequence.items.empty()) {
      writer_.Append("[]", untrusted);
      return writer_.status();
    }
    writer_.Append("[", untrusted);
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) {
        Punctuate(style_.item_separator, untrusted);
      }
      NewLine(level + 1, untrusted);
      MILLRACE_RETURN_IF_ERROR(Write(sequence.items[i], level + 1));
    }
    NewLine(level, untrusted);
    writer_.Append("]", untrusted);
    return writer_.status();
  }

  absl::Status WriteKey(const Value& key) {
    if (key.Is(Kind::kString)) {
      return WriteText(key.text());
    }
    if (key.Is(Kind::kTuple)) {
      return Fail("a key of JSON cannot be a tuple");
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::string scalar, Scalar(key));
    writer_.Append(absl::StrCat("\"", scalar, "\""), key.untrusted());
    return writer_.status();
  }

  absl::StatusOr<std::vector<size_t>> Order(const DictObject& dict) {
    std::vector<size_t> order(dict.entries.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    absl::Status failed;
    if (style_.sort_keys) {
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        if (!failed.ok()) {
          return false;
        }
        const absl::StatusOr<bool> less =
            Less(runtime_, dict.entries[a].first, dict.entries[b].first);
        failed = less.status();
        return less.ok() && *less;
      });
    }
    MILLRACE_RETURN_IF_ERROR(failed);
    return order;
  }

  absl::Status WriteDict(const DictObject& dict, int level) {
    const bool untrusted = dict.untrusted;
    if (dict.entries.empty()) {
      writer_.Append("{}", untrusted);
      return writer_.status();
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<size_t> order, Order(dict));
    writer_.Append("{", untrusted);
    bool first = true;
    for (const size_t index : order) {
      const auto& [key, value] = dict.entries[index];
      if (!first) {
        Punctuate(style_.item_separator, untrusted);
      }
      first = false;
      NewLine(level + 1, untrusted);
      MILLRACE_RETURN_IF_ERROR(WriteKey(key));
      Punctuate(style_.key_separator, untrusted);
      MILLRACE_RETURN_IF_ERROR(Write(value, level + 1));
    }
    NewLine(level, untrusted);
    writer_.Append("}", untrusted);
    return writer_.status();
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  TextWriter& writer_;
};

}  // namespace

absl::Status AppendJson(Runtime& runtime, const Value& value,
                        const JsonStyle& style, TextWriter& writer) {
  return JsonPrinter(runtime, style, writer).Write(value, 0);
}

}  // namespace millrace::model::jinja
