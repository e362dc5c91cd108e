#pragma once

#include <vector>

#include "model/chat/jinja/value.h"

namespace millrace::model::jinja {

struct Statement;
struct Scope;

// A macro with the variables around its definition, or the body of a call
// block (caller).
struct MacroObject : Object {
  const Statement* statement = nullptr;
  Scope* closure = nullptr;
};

// The variable `loop`.
struct LoopObject : Object {
  std::vector<Value> items;  // all of them, after the filter clause
  size_t index = 0;
  int64_t depth0 = 0;
  Value last_checked = Value::Missing();  // of changed()
  // For loop(...) of a recursive one, else null.
  const Statement* recursive = nullptr;
  Scope* scope = nullptr;
};

}  // namespace millrace::model::jinja
