// millrace tokenize: text to token ids and back.
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "cli/batch_lines.h"
#include "cli/commands.h"
#include "cli/number_list.h"
#include "cli/token_input.h"
#include "model/tokenizer/open.h"
#include "model/tokenizer/tokenizer.h"

namespace millrace::cli {
namespace {

using model::AddedTokenMode;
using model::TokenId;
using model::Tokenizer;

// Of any vocabulary: the tokenizer says which ones it has.
absl::StatusOr<std::vector<TokenId>> ParseIds(const std::string& list) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                            ParseNumberList(list, "--decode", "token id"));
  std::vector<TokenId> ids;
  ids.reserve(numbers.size());
  for (const int64_t id : numbers) {
    if (id < 0 || id > std::numeric_limits<TokenId>::max()) {
      return UsageError("--decode", absl::StrCat(id, " is no token id"),
                        "give ids like 1,2,3");
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

boost::json::array IdsJson(const std::vector<TokenId>& ids) {
  boost::json::array out;
  out.reserve(ids.size());
  for (const TokenId id : ids) {
    out.emplace_back(id);
  }
  return out;
}

absl::StatusOr<AddedTokenMode> ModeNamed(const JsonObject& request) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string mode,
                            request.StringOr("mode", "plain"));
  if (mode == "plain") {
    return AddedTokenMode::kPlain;
  }
  if (mode == "parse_special") {
    return AddedTokenMode::kParseSpecial;
  }
  if (mode == "no_added") {
    return AddedTokenMode::kNone;
  }
  return request.ErrorAt("mode", "must be plain, parse_special or no_added");
}

absl::StatusOr<boost::json::object> EncodeRequest(const Tokenizer& tokenizer,
                                                  const JsonObject& request) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string encoded,
                            request.String("text_b64"));
  std::string text;
  if (!absl::Base64Unescape(encoded, &text)) {
    return request.ErrorAt("text_b64", "is no base64");
  }
  MILLRACE_ASSIGN_OR_RETURN(const AddedTokenMode mode, ModeNamed(request));
  MILLRACE_ASSIGN_OR_RETURN(const bool add_special,
                            request.BoolOr("add_special", true));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                            tokenizer.Encode(text, mode, add_special));
  boost::json::object out;
  out["ids"] = IdsJson(ids);
  return out;
}

absl::StatusOr<boost::json::object> DecodeRequest(const Tokenizer& tokenizer,
                                                  const JsonObject& request) {
  const Json* list = request.Find("ids");
  if (list == nullptr || !list->is_array()) {
    return request.ErrorAt("ids", "must be a list of token ids");
  }
  std::vector<TokenId> ids;
  for (const Json& id : list->get_array()) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() > INT32_MAX) {
      return request.ErrorAt("ids", "has an element that is no token id");
    }
    ids.push_back(static_cast<TokenId>(id.get_int64()));
  }
  MILLRACE_ASSIGN_OR_RETURN(const bool skip_special,
                            request.BoolOr("skip_special", false));
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            tokenizer.Decode(ids, skip_special));
  boost::json::object out;
  out["text_b64"] = absl::Base64Escape(text);
  return out;
}

absl::StatusOr<boost::json::object> Answer(const Tokenizer& tokenizer,
                                           absl::string_view line,
                                           absl::string_view where) {
  MILLRACE_ASSIGN_OR_RETURN(const Json value, ParseJson(line, where));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject request,
                            JsonObject::From(value, where));
  return request.Has("text_b64") ? EncodeRequest(tokenizer, request)
                                 : DecodeRequest(tokenizer, request);
}

class TokenizeCommand final : public Command {
 public:
  const char* name() const override { return "tokenize"; }
  const char* summary() const override {
    return "Turn text into token ids, or ids into text";
  }
  const char* example() const override {
    return "millrace tokenize model.gguf --text 'Hello, world'";
  }

  void Define(CLI::App& app) override {
    app.add_option("MODEL", model_,
                   "Model folder, GGUF file or lone tokenizer.json")
        ->required();
    text_option_ = app.add_option("--text", text_, "Text to tokenize");
    file_option_ = app.add_option("--file", file_,
                                  "File of the text (default: standard input)");
    decode_option_ = app.add_option("--decode", decode_,
                                    "Token ids to turn into text, like 1,2,3");
    batch_option_ =
        app.add_option("--batch", batch_,
                       "File of JSON lines {text_b64, mode, add_special} or "
                       "{ids, skip_special}; one answer a line");
    app.add_flag("--parse-special", parse_special_,
                 "Match special tokens in the text");
    app.add_flag("--no-add-special", no_add_special_,
                 "Put no BOS or other special tokens around the text");
    app.add_flag("--skip-special", skip_special_,
                 "Leave special tokens out of decoded text");
  }

  absl::Status Run(Console& console) override {
    const size_t sources = static_cast<size_t>(text_option_->count() > 0) +
                           static_cast<size_t>(file_option_->count() > 0) +
                           static_cast<size_t>(decode_option_->count() > 0) +
                           static_cast<size_t>(batch_option_->count() > 0);
    if (sources > 1) {
      return UsageError("tokenize",
                        "--text, --file, --decode and --batch exclude each "
                        "other",
                        "give one of them");
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                              model::OpenTokenizer(model_));
    if (decode_option_->count() > 0) {
      return Decode(*tokenizer, console);
    }
    if (batch_option_->count() > 0) {
      return AnswerLines(
          batch_,
          [&](absl::string_view line, const std::string& where) {
            return Answer(*tokenizer, line, where);
          },
          console);
    }
    return Encode(*tokenizer, console);
  }

 private:
  absl::StatusOr<std::string> Text() const {
    if (text_option_->count() > 0) {
      return text_;
    }
    return file_option_->count() > 0 ? ReadFile(file_, kTextBytesMax)
                                     : ReadStdin(kTextBytesMax);
  }

  absl::Status Encode(const Tokenizer& tokenizer, Console& console) const {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text, Text());
    MILLRACE_ASSIGN_OR_RETURN(
        const std::vector<TokenId> ids,
        tokenizer.Encode(text,
                         parse_special_ ? AddedTokenMode::kParseSpecial
                                        : AddedTokenMode::kPlain,
                         !no_add_special_));
    if (!console.json()) {
      console.Out(absl::StrCat(absl::StrJoin(ids, " "), "\n"));
      return absl::OkStatus();
    }
    boost::json::object out;
    out["ids"] = IdsJson(ids);
    boost::json::array& pieces = out["pieces"].emplace_array();
    for (const TokenId id : ids) {
      MILLRACE_ASSIGN_OR_RETURN(const std::string piece, tokenizer.Piece(id));
      pieces.emplace_back(piece);
    }
    console.OutJson(out);
    return absl::OkStatus();
  }

  absl::Status Decode(const Tokenizer& tokenizer, Console& console) const {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                              ParseIds(decode_));
    MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                              tokenizer.Decode(ids, skip_special_));
    if (console.json()) {
      boost::json::object out;
      out["text"] = text;
      console.OutJson(out);
    } else {
      console.Out(absl::StrCat(text, console.out_is_terminal() ? "\n" : ""));
    }
    return absl::OkStatus();
  }

  std::string model_;
  std::string text_;
  std::string file_;
  std::string decode_;
  std::string batch_;
  bool parse_special_ = false;
  bool no_add_special_ = false;
  bool skip_special_ = false;
  CLI::Option* text_option_ = nullptr;
  CLI::Option* file_option_ = nullptr;
  CLI::Option* decode_option_ = nullptr;
  CLI::Option* batch_option_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> MakeTokenizeCommand() {
  return std::make_unique<TokenizeCommand>();
}

}  // namespace millrace::cli
