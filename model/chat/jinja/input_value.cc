#include "model/chat/jinja/input_value.h"

#include "base/status_macros.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "boost/json/string.hpp"

namespace millrace::model::jinja {
namespace {

absl::StatusOr<Value> InputText(Runtime& runtime, boost::json::string_view text,
                                bool untrusted) {
  return runtime.heap().MakeString(Text({text.data(), text.size()}, untrusted));
}

}  // namespace

absl::StatusOr<Value> InputValue(Runtime& runtime, const Json& json,
                                 bool untrusted) {
  const DepthGuard guard(runtime);
  MILLRACE_RETURN_IF_ERROR(guard.status());
  switch (json.kind()) {
    case boost::json::kind::null:
      return Value::None(untrusted);
    case boost::json::kind::bool_:
      return Value::Bool(json.get_bool(), untrusted);
    case boost::json::kind::int64:
      return Value::Of(json.get_int64(), untrusted);
    case boost::json::kind::uint64:
      return Value::Of(json.get_uint64(), untrusted);
    case boost::json::kind::double_:
      return Value::Float(json.get_double(), untrusted);
    case boost::json::kind::string:
      return InputText(runtime, json.get_string(), untrusted);
    case boost::json::kind::array: {
      std::vector<Value> items;
      items.reserve(json.get_array().size());
      for (const Json& item : json.get_array()) {
        MILLRACE_ASSIGN_OR_RETURN(Value value,
                                  InputValue(runtime, item, untrusted));
        items.push_back(std::move(value));
      }
      MILLRACE_ASSIGN_OR_RETURN(
          Value list, runtime.heap().MakeSequence(Kind::kList, std::move(items),
                                                  untrusted));
      return list;
    }
    case boost::json::kind::object:
      break;
  }
  MILLRACE_ASSIGN_OR_RETURN(DictObject * dict,
                            runtime.heap().New<DictObject>());
  dict->untrusted = untrusted;
  for (const auto& [name, item] : json.get_object()) {
    MILLRACE_ASSIGN_OR_RETURN(const Value key,
                              InputText(runtime, name, untrusted));
    MILLRACE_ASSIGN_OR_RETURN(Value value,
                              InputValue(runtime, item, untrusted));
    MILLRACE_RETURN_IF_ERROR(runtime.heap().Put(*dict, key, std::move(value)));
  }
  return Value::Of(Kind::kDict, dict);
}

}  // namespace millrace::model::jinja
