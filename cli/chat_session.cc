#include "cli/chat_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"

namespace millrace::cli {
namespace {

constexpr int64_t kSessionBytesMax = int64_t{64} << 20;

}  // namespace

absl::StatusOr<std::vector<ChatMessage>> ReadSession(const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(path, kSessionBytesMax));
  MILLRACE_ASSIGN_OR_RETURN(const Json document, ParseJson(text, path));
  MILLRACE_ASSIGN_OR_RETURN(const JsonObject session,
                            JsonObject::From(document, path));
  MILLRACE_RETURN_IF_ERROR(session.Integer("version", 1, 1).status());
  const Json* list = session.Find("messages");
  if (list == nullptr || !list->is_array()) {
    return session.ErrorAt("messages", "must be a list");
  }
  std::vector<ChatMessage> messages;
  for (const Json& entry : list->get_array()) {
    MILLRACE_ASSIGN_OR_RETURN(
        const JsonObject message,
        JsonObject::From(entry, path,
                         absl::StrCat("messages[", messages.size(), "]")));
    ChatMessage out;
    MILLRACE_ASSIGN_OR_RETURN(out.role, message.String("role"));
    MILLRACE_ASSIGN_OR_RETURN(out.text, message.String("content"));
    if (out.role != "system" && out.role != "user" && out.role != "assistant") {
      return message.ErrorAt("role", "must be system, user or assistant");
    }
    messages.push_back(std::move(out));
  }
  return messages;
}

absl::Status WriteSession(const std::string& path,
                          const std::vector<ChatMessage>& messages) {
  boost::json::array list;
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.text}});
  }
  boost::json::object document;
  document["version"] = 1;
  document["messages"] = std::move(list);
  return WriteFileAtomically(path, absl::StrCat(WriteJson(document), "\n"));
}

}  // namespace millrace::cli
