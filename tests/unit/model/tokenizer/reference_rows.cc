#include "tests/unit/model/tokenizer/reference_rows.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/json.h"
#include "boost/json/array.hpp"
#include "gtest/gtest.h"

namespace millrace::model {
namespace {

struct Row {
  std::string id;
  std::string mode;
  bool add_special = false;
  bool skip_special = false;
  bool newer = false;
  std::string text;
  std::string decoded;
  std::vector<TokenId> ids;
};

std::string Bytes(const JsonObject& object, absl::string_view key) {
  std::string out;
  EXPECT_TRUE(absl::Base64Unescape(object.String(key).value(), &out));
  return out;
}

Row ReadRow(absl::string_view line, const std::string& path) {
  const Json value = ParseJson(line, path).value();
  const JsonObject object = JsonObject::From(value, path).value();
  Row row;
  row.id = object.String("id").value();
  row.mode = object.String("mode").value();
  row.add_special = object.BoolOr("add_special", false).value();
  row.skip_special = object.BoolOr("skip_special", false).value();
  row.newer = object.IntegerOr("unicode", 0, 100, 0).value() > 14;
  if (object.Has("text_b64")) {
    row.text = Bytes(object, "text_b64");
  }
  row.decoded =
      object.Has("decoded_b64") ? Bytes(object, "decoded_b64") : row.text;
  for (const Json& id : object.Find("ids")->get_array()) {
    row.ids.push_back(static_cast<TokenId>(id.get_int64()));
  }
  return row;
}

AddedTokenMode ModeOf(const std::string& name) {
  if (name == "plain") {
    return AddedTokenMode::kPlain;
  }
  return name == "no_added" ? AddedTokenMode::kNone
                            : AddedTokenMode::kParseSpecial;
}

std::string Show(const absl::StatusOr<std::vector<TokenId>>& ids) {
  return ids.ok() ? absl::StrJoin(ids->begin(),
                                  ids->begin() + std::min<std::ptrdiff_t>(
                                                     30, std::ssize(*ids)),
                                  " ")
                  : std::string(ids.status().message());
}

// Empty when all is as it must be.
std::string CheckRow(const Tokenizer& tokenizer, const Row& row) {
  if (row.mode != "decode") {
    const auto ids =
        tokenizer.Encode(row.text, ModeOf(row.mode), row.add_special);
    if (!ids.ok() || *ids != row.ids) {
      return absl::StrCat("encodes to ", Show(ids), ", not to ", Show(row.ids));
    }
    const TextSegment whole{row.text, ModeOf(row.mode)};
    const auto segments = tokenizer.EncodeSegments({whole});
    if (!row.add_special && segments.value() != row.ids) {
      return absl::StrCat("encodes as a segment to ", Show(segments));
    }
  }
  const bool skip = row.mode == "decode" && row.skip_special;
  const auto text = tokenizer.Decode(row.ids, skip);
  if (!text.ok() || *text != row.decoded) {
    return absl::StrCat("decodes to ",
                        absl::CHexEscape(text.value_or("an error")), ", not ",
                        absl::CHexEscape(row.decoded));
  }
  StreamingDetokenizer stream(tokenizer, skip);
  std::string streamed;
  for (const TokenId id : row.ids) {
    streamed += stream.Append(id);
  }
  streamed += stream.Finish();
  return streamed == row.decoded
             ? ""
             : absl::StrCat("streams to ", absl::CHexEscape(streamed));
}

}  // namespace

RowResults RunReferenceRows(const Tokenizer& tokenizer,
                            const std::string& path) {
  const std::string lines = ReadFile(path, int64_t{1} << 30).value();
  RowResults out;
  for (const absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const Row row = ReadRow(line, path);
    const std::string wrong = CheckRow(tokenizer, row);
    if (wrong.empty()) {
      ++out.passed;
    } else if (row.newer) {
      ++out.newer;
    } else {
      out.failures.push_back(
          absl::StrCat(row.id, " (", row.mode, "): ", wrong.substr(0, 400)));
    }
  }
  return out;
}

}  // namespace millrace::model
