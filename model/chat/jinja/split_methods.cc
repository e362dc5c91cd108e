#include <algorithm>

#include "base/status_macros.h"
#include "model/chat/jinja/natives.h"
#include "model/chat/jinja/text_operations.h"
#include "model/chat/jinja/unicode.h"

namespace millrace::model::jinja {
namespace {

const Text& Self(const Arguments& arguments) {
  return arguments.positional[0].text();
}

// Runs of characters that are no white space; what is left after `limit`
// splits is one piece.
std::vector<Piece> SplitAtSpace(const Text& text, int64_t limit) {
  std::vector<Piece> out;
  const absl::string_view bytes = text.bytes();
  int64_t at = 0;
  while (true) {
    while (at < text.size() && IsSpace(CodePointAt(bytes, at))) {
      at = NextPosition(bytes, at);
    }
    if (at >= text.size()) {
      return out;
    }
    if (limit-- == 0) {
      break;
    }
    const int64_t begin = at;
    while (at < text.size() && !IsSpace(CodePointAt(bytes, at))) {
      at = NextPosition(bytes, at);
    }
    out.push_back({begin, at});
  }
  out.push_back({at, text.size()});
  return out;
}

std::vector<Piece> SplitAtSpaceFromRight(const Text& text, int64_t limit) {
  std::vector<Piece> out;
  const absl::string_view bytes = text.bytes();
  const auto space_before = [&](int64_t position) {
    return IsSpace(CodePointAt(bytes, PreviousPosition(bytes, position)));
  };
  int64_t at = text.size();
  while (true) {
    while (at > 0 && space_before(at)) {
      at = PreviousPosition(bytes, at);
    }
    if (at == 0) {
      break;
    }
    if (limit-- == 0) {
      out.push_back({0, at});
      break;
    }
    const int64_t end = at;
    while (at > 0 && !space_before(at)) {
      at = PreviousPosition(bytes, at);
    }
    out.push_back({at, end});
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Piece> SplitAt(const Text& text, const Text& separator,
                           int64_t limit) {
  std::vector<Piece> out;
  int64_t begin = 0;
  for (; limit != 0; --limit) {
    const size_t found =
        text.bytes().find(separator.bytes(), static_cast<size_t>(begin));
    if (found == absl::string_view::npos) {
      break;
    }
    out.push_back({begin, static_cast<int64_t>(found)});
    begin = static_cast<int64_t>(found) + separator.size();
  }
  out.push_back({begin, text.size()});
  return out;
}

std::vector<Piece> SplitAtFromRight(const Text& text, const Text& separator,
                                    int64_t limit) {
  std::vector<Piece> out;
  int64_t end = text.size();
  for (; limit != 0 && end >= separator.size(); --limit) {
    const size_t found = text.bytes().rfind(
        separator.bytes(), static_cast<size_t>(end - separator.size()));
    if (found == absl::string_view::npos) {
      break;
    }
    out.push_back({static_cast<int64_t>(found) + separator.size(), end});
    end = static_cast<int64_t>(found);
  }
  out.push_back({0, end});
  std::reverse(out.begin(), out.end());
  return out;
}

template <bool from_right>
absl::StatusOr<Value> SplitMethod(Runtime& runtime, Arguments& arguments) {
  const Text& self = Self(arguments);
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(self.size()));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t limit,
                            IntegerArgument(arguments, 2, "maxsplit", -1));
  if (!IsGiven(arguments, 1)) {
    return ListOfPieces(runtime, self,
                        from_right ? SplitAtSpaceFromRight(self, limit)
                                   : SplitAtSpace(self, limit));
  }
  MILLRACE_ASSIGN_OR_RETURN(const Text* separator,
                            TextArgument(arguments, 1, "the separator"));
  if (separator->empty()) {
    return Fail("empty separator");
  }
  return ListOfPieces(runtime, self,
                      from_right ? SplitAtFromRight(self, *separator, limit)
                                 : SplitAt(self, *separator, limit));
}

template <bool from_right>
absl::StatusOr<Value> PartitionMethod(Runtime& runtime, Arguments& arguments) {
  const Text& self = Self(arguments);
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(self.size()));
  MILLRACE_ASSIGN_OR_RETURN(const Text* separator,
                            TextArgument(arguments, 1, "the separator"));
  if (separator->empty()) {
    return Fail("empty separator");
  }
  const size_t found = from_right ? self.bytes().rfind(separator->bytes())
                                  : self.bytes().find(separator->bytes());
  int64_t begin = from_right ? 0 : self.size();
  int64_t end = begin;
  if (found != absl::string_view::npos) {
    begin = static_cast<int64_t>(found);
    end = begin + separator->size();
  }
  std::vector<Value> parts;
  for (const Piece& piece :
       {Piece{0, begin}, Piece{begin, end}, Piece{end, self.size()}}) {
    MILLRACE_ASSIGN_OR_RETURN(Value part, runtime.heap().MakeString(self.Sub(
                                              piece.begin, piece.end)));
    parts.push_back(std::move(part));
  }
  return runtime.heap().MakeTuple(std::move(parts));
}

absl::StatusOr<Value> SplitLinesMethod(Runtime& runtime, Arguments& arguments) {
  const Text& self = Self(arguments);
  MILLRACE_RETURN_IF_ERROR(runtime.SpendPass(self.size()));
  return ListOfPieces(runtime, self,
                      SplitLines(self, FlagArgument(arguments, 1, false)));
}

constexpr Native kMethods[] = {
    {"partition", "s,sep", 2, PartitionMethod<false>},
    {"rpartition", "s,sep", 2, PartitionMethod<true>},
    {"rsplit", "s,sep,maxsplit", 1, SplitMethod<true>},
    {"split", "s,sep,maxsplit", 1, SplitMethod<false>},
    {"splitlines", "s,keepends", 1, SplitLinesMethod},
};

}  // namespace

absl::Span<const Native> SplitMethods() { return kMethods; }

}  // namespace millrace::model::jinja
